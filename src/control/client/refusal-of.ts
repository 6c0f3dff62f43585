/** Turns an answer of the daemon that refuses something into the PlaneRefusal that it came from. */

import { isObject } from '../../kit/json.ts'
import { PlaneRefusal, type RefusalCode, refusalCodes } from '../contract/plane-refusal.ts'

/** Codes of answers that the HTTP layer itself gave: it has words of its own. */
const byStatus: { readonly [status: number]: RefusalCode } = {
  400: 'bad_request',
  401: 'unauthorized',
  402: 'budget_exceeded',
  403: 'forbidden',
  404: 'not_found',
  405: 'bad_request',
  408: 'unavailable',
  409: 'conflict',
  413: 'too_large',
  415: 'bad_request',
  422: 'idempotency_mismatch',
  429: 'too_many',
}

/** Another daemon still answers the same request: to ask again is right. */
const byCode: { readonly [code: string]: RefusalCode } = { in_progress: 'unavailable', too_busy: 'unavailable' }

/** Reads the body. */
export async function refusalOf(response: Response): Promise<PlaneRefusal> {
  const told: unknown = await response.json().catch(() => undefined)
  const error = isObject(told) && isObject(told.error) ? told.error : {}
  const code =
    refusalCodes.find((each) => each === error.code) ??
    (typeof error.code === 'string' ? byCode[error.code] : undefined) ??
    byStatus[response.status] ??
    'unavailable'
  const message = typeof error.message === 'string' ? error.message : `the control plane answered with status ${response.status}`
  const details = isObject(error.details) ? error.details : {}
  const wait = typeof error.retry_after_ms === 'number' ? error.retry_after_ms : secondsOf(response)
  return new PlaneRefusal(code, message, { ...details, ...(wait === undefined ? {} : { retry_after_ms: wait }) })
}

function secondsOf({ headers }: Response): number | undefined {
  const seconds = Number(headers.get('retry-after') ?? Number.NaN)
  return Number.isFinite(seconds) ? seconds * 1000 : undefined
}
