/** Calls the routes of the control plane that served this page, and follows its events. */

import type { ControlEvent } from '../../../../control/contract/activity-shapes.ts'
import { call, type Method } from '../../net/api.ts'
import { listeners } from '../../net/live.ts'

export const root = '/api/controlplane'

/** @throws ApiError */
export function plane<T>(method: Method, path: string, body?: unknown, headers?: HeadersInit): Promise<T> {
  return call<T>(method, `${root}/${path}`, body, headers)
}

/** What happens in the control plane. */
export const { listen: listenToPlane, tell: tellOfPlane } = listeners<ControlEvent>()

/** `?a=1&b=2` of the values that are there. */
export function queryOf(values: { readonly [name: string]: string | number | boolean | undefined }): string {
  const known = Object.entries(values).flatMap(([name, value]) => (value === undefined || value === '' ? [] : [[name, String(value)]]))
  return known.length === 0 ? '' : `?${new URLSearchParams(known)}`
}
