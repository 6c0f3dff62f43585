/** Maps a status, an error body, a stream's error event or a thrown error to a FailureCode. */

import { isObject } from '../../kit/json.ts'
import type { FailureCode } from '../../runtime/event.ts'
import { ProviderFailure } from '../../runtime/port.ts'
import { lengthRefusal } from './length-refusal.ts'

const words: readonly (readonly [RegExp, FailureCode])[] = [
  [/insufficient.?quota|billing|credit balance|payment/i, 'auth'],
  [/rate.?limit|too many requests/i, 'rate_limit'],
  [/authentication|unauthori[sz]ed|permission|forbidden|invalid.{0,3}api.?key/i, 'auth'],
  [/overload|unavailable|internal.?(server.?)?error|server.?error|bad gateway|api_error/i, 'server'],
  [/time.?out|timed out/i, 'timeout'],
  [/invalid.?request|bad.?request|not.?found|unsupported/i, 'bad_request'],
]

/** The status decides, except where the text is more precise, as with 429 for an empty account. See length-refusal.ts for a request that is too long. */
export function codeOf(status: number | undefined, text: string): FailureCode {
  const said = words.find(([pattern]) => pattern.test(text))?.[1]
  if (status === undefined) return said ?? 'server'
  if (status === 401 || status === 402 || status === 403 || status === 407) return 'auth'
  if (status === 429) return said === 'auth' ? 'auth' : 'rate_limit'
  if (status === 408 || status === 504) return 'timeout'
  if (status >= 500) return 'server'
  if (status >= 400) return said === 'auth' && status === 400 ? said : 'bad_request'
  return 'bad_response'
}

/** Extracts the vendor's own sentence from an error body or event of any known shape; otherwise returns the start of the text. */
export function errorText(body: string): string {
  return sentence(parsed(body)) ?? cut(body)
}

/** Maps the error object of a stream (or of a 200 answer) to a failure. Its `code` may be a status, a word or absent. */
export function failureOf(error: unknown, provider: string): ProviderFailure {
  const inner = isObject(error) && isObject(error.error) ? error.error : error
  const fields = isObject(inner) ? inner : {}
  const status = [fields.statusCode, fields.status, fields.code].map(Number).find((n) => Number.isInteger(n) && n >= 400 && n <= 599)
  const text = sentence(inner) ?? cut(describe(inner))
  const lengths = lengthRefusal(status, inner)
  const code = lengths ? 'context_length' : codeOf(status, `${word(fields.type)} ${word(fields.code)} ${text}`)
  return new ProviderFailure(code, `provider "${provider}" reported an error: ${text}`, { status, provider, ...lengths })
}

/** Maps an error of a dialect to a failure: our own failure passed through, the server's error, or an unreadable reply. */
export function libraryFailure(error: unknown, provider: string): ProviderFailure {
  const own = ownFailure(error)
  if (own !== undefined) return own
  const status = isObject(error) ? Number(error.statusCode) : Number.NaN
  if (!(error instanceof Error) || status >= 400) return failureOf(error, provider)
  return new ProviderFailure('bad_response', `provider "${provider}" sent a reply that cannot be read: ${cut(error.message)}`, { provider })
}

export function truncated(provider: string): ProviderFailure {
  return new ProviderFailure('network', `the reply of provider "${provider}" ended before it was complete`, { provider })
}

/** Finds our own failure among the causes of a library's error. */
export function ownFailure(error: unknown): ProviderFailure | undefined {
  for (let seen = 0, at = error; seen < 10 && at instanceof Error; seen++, at = at.cause) {
    if (at instanceof ProviderFailure) return at
  }
  return undefined
}

/** Reads Retry-After (seconds or an HTTP date) or retry-after-ms. @returns ms from now, 0 to 24 hours; undefined for an invalid value */
export function retryAfterMs(headers: Headers, now: number): number | undefined {
  const ms = headers.get('retry-after-ms')
  const after = headers.get('retry-after')
  const wait = ms !== null ? Number(ms.trim() || 'x') : after !== null ? seconds(after.trim(), now) : Number.NaN
  return Number.isNaN(wait) ? undefined : Math.min(Math.max(0, Math.ceil(wait)), 86_400_000)
}

/** Shortens a text for a message, to at most 300 printable characters on one line. */
export function cut(text: string): string {
  const line = text
    .slice(0, 2_000)
    .replace(/[\p{C}\s]+/gu, ' ')
    .trim()
    .toWellFormed()
  return line.length > 300 ? `${line.slice(0, 300).toWellFormed()}…` : line
}

function seconds(value: string, now: number): number {
  if (/^\d+(\.\d+)?$/.test(value)) return Number(value) * 1000
  return /[a-z]/i.test(value) ? Date.parse(value) - now : Number.NaN
}

function sentence(value: unknown): string | undefined {
  if (!isObject(value)) return undefined
  if (isObject(value.error)) return sentence(value.error)
  const text = [value.message, value.error, value.detail].find((each) => typeof each === 'string' && each !== '')
  return typeof text === 'string' ? cut(text) : undefined
}

function parsed(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text)
    return Array.isArray(value) ? value[0] : value
  } catch {
    return undefined
  }
}

function describe(value: unknown): string {
  if (value instanceof Error) return value.message
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? String(value))
}

function word(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
