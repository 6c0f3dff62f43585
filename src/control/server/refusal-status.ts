/** Maps each refusal of the plane to the answer that HTTP gives. */

import { HttpError } from '../../http/http-error.ts'
import { PlaneRefusal, type RefusalCode } from '../contract/plane-refusal.ts'

const statuses: { readonly [code in RefusalCode]?: number } = {
  bad_request: 400,
  unauthorized: 401,
  budget_exceeded: 402,
  forbidden: 403,
  approval_required: 403,
  not_found: 404,
  idempotency_mismatch: 422,
  too_large: 413,
  too_many: 429,
  unavailable: 503,
}

/** Returns 409 for all other codes: the state of a thing forbids the request. */
export function statusOf(code: RefusalCode): number {
  return statuses[code] ?? 409
}

/** @returns undefined for other errors */
export function httpErrorOf(error: unknown): HttpError | undefined {
  if (!(error instanceof PlaneRefusal)) return undefined
  const { retry_after_ms, ...details } = error.details
  const wait: { [name: string]: string } = retry_after_ms === undefined ? {} : { 'retry-after': String(Math.ceil(retry_after_ms / 1000)) }
  const fields = { retry_after_ms, details: Object.keys(details).length === 0 ? undefined : details }
  return new HttpError(statusOf(error.code), error.code, error.message, wait, fields)
}
