/** Writes failures in the shape of the API that the runner speaks, so that a runner of another maker understands and stops. */

import { HttpError, quiet } from '../../http/http-error.ts'
import { PlaneRefusal, type RefusalCode } from '../contract/plane-refusal.ts'
import type { Vendor } from './upstream-call.ts'

/** `retryAfterS`: absent when the same request will fail again. */
export type Failure = { readonly status: number; readonly code: string; readonly message: string; readonly retryAfterS?: number }

const statuses: { readonly [code in RefusalCode]?: number } = {
  bad_request: 400,
  unauthorized: 401,
  budget_exceeded: 402,
  forbidden: 403,
  not_found: 404,
  too_large: 413,
  too_many: 429,
  unavailable: 503,
}

/** @throws what is neither a refusal nor an HTTP error: a bug */
export function failureOf(error: unknown): Failure {
  if (error instanceof HttpError) return { status: error.status, code: error.code, message: error.message }
  if (!(error instanceof PlaneRefusal)) throw error
  const { code, message, details } = error
  const later = details.retry_after_ms
  return {
    // What other calls hold is free in a moment: no reason to stop.
    ...{ status: details.shortage === 'soon' ? 429 : (statuses[code] ?? 409), code, message },
    ...(later === undefined ? {} : { retryAfterS: Math.max(1, Math.ceil(later / 1000)) }),
  }
}

export function errorBody(vendor: Vendor, { status, code, message }: Failure): object {
  if (vendor === 'anthropic') return { type: 'error', error: { type: anthropicTypes[status] ?? usual(status, 'api_error'), message } }
  return { error: { message, type: openAiTypes[status] ?? usual(status, 'server_error'), param: null, code } }
}

/** Both vendors' libraries obey `x-should-retry`; they would send a request again after 409 and 5xx. */
export function errorAnswer(vendor: Vendor, failure: Failure): Response {
  const again = failure.retryAfterS === undefined ? {} : { 'retry-after': String(failure.retryAfterS) }
  const retry = failure.retryAfterS !== undefined || [429, 502, 504].includes(failure.status)
  const headers = { ...quiet, ...again, 'x-should-retry': String(retry) }
  return Response.json(errorBody(vendor, failure), { status: failure.status, headers })
}

function usual(status: number, server: string): string {
  return status >= 500 ? server : 'invalid_request_error'
}

const openAiTypes: { readonly [status: number]: string } = {
  401: 'authentication_error',
  402: 'insufficient_quota',
  403: 'permission_error',
  429: 'rate_limit_error',
}

const anthropicTypes: { readonly [status: number]: string } = {
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
}
