/** Declares what the routes of the control plane share. */

import type { Api } from '../../http/api.ts'
import type { QuickRoutes } from '../../http/quick-routes.ts'
import type { Caller } from '../contract/caller.ts'
import type { Plane } from '../contract/plane.ts'
import type { HostdProxy } from '../hostd/hostd-proxy.ts'
import type { Counters } from './counters.ts'

export type ControlApi = Api<Caller>

export type ControlServer = {
  readonly plane: Plane
  readonly version: string
  /** Absent: this control plane has no hostd. */
  readonly hostd?: HostdProxy
  /** Aborted when the server begins to stop: what waits answers at once, streams end. */
  readonly stopping: AbortSignal
  /** Whether it speaks HTTPS. */
  readonly secure: boolean
  readonly counters: Counters
  readonly now: () => number
  readonly log: (level: 'info' | 'warn' | 'error', event: string, fields?: object) => void
}

/** Adds some routes. */
export type ControlRoutes = (app: ControlApi, server: ControlServer, quick: QuickRoutes<Caller>) => void
