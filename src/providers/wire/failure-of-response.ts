/** Maps a status, an error body, a stream's error event or a thrown error to a FailureCode. */

import { isObject, parseJson } from '../../kit/json.ts'
import type { FailureCode } from '../../runtime/event.ts'
import { type FailureDetail, ProviderFailure } from '../../runtime/port.ts'

const words: readonly (readonly [RegExp, FailureCode])[] = [
  [/insufficient.?quota|billing|credit balance|payment/i, 'auth'],
  [/rate.?limit|too many requests/i, 'rate_limit'],
  [/authentication|unauthori[sz]ed|permission|forbidden|invalid.{0,3}api.?key/i, 'auth'],
  [/overload|unavailable|internal.?(server.?)?error|server.?error|bad gateway|api_error/i, 'server'],
  [/time.?out|timed out/i, 'timeout'],
  [/invalid.?request|bad.?request|not.?found|unsupported/i, 'bad_request'],
]

/** The status decides, except where the text is more precise, as with 429 for an empty account. */
export function codeOf(status: number | undefined, text: string): FailureCode {
  const code = words.find(([pattern]) => pattern.test(text))?.[1]
  if (status === undefined) return code ?? 'server'
  if (status === 401 || status === 402 || status === 403 || status === 407) return 'auth'
  if (status === 429) return code === 'auth' ? 'auth' : 'rate_limit'
  if (status === 408 || status === 504) return 'timeout'
  if (status >= 500) return 'server'
  if (status >= 400) return code === 'auth' && status === 400 ? code : 'bad_request'
  return 'bad_response'
}

/** Extracts the vendor's own sentence from an error body or event of any known shape; otherwise returns the start of the text. */
export function vendorMessage(body: string): string {
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
  const after = code === 'rate_limit' ? waitIn(text) : undefined
  return new ProviderFailure(code, `provider "${provider}" reported an error: ${text}`, {
    status,
    retryAfterMs: after,
    provider,
    ...lengths,
  })
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

const unitsMs: { readonly [unit: string]: number } = { ms: 1, milli: 1, s: 1000, m: 60_000, h: 3_600_000 }

/** Reads "try again in 1m30.5s", "retry after 20 seconds". @returns ms, up to 24 hours; undefined when the text names no time */
export function waitIn(text: string): number | undefined {
  const time =
    /\b(?:again|retry(?:ing)?|wait)\b[^\d.]{0,20}((?:\d+(?:\.\d+)?\s?(?:ms|milli\w*|s|secs?|seconds?|m|mins?|minutes?|h|hours?)\b\s?|\d+(?:\.\d+)?[hm](?=\d))+)/i.exec(
      text,
    )?.[1]
  if (time === undefined) return undefined
  const parts = [...time.matchAll(/(\d+(?:\.\d+)?)\s?(ms|milli|s|m|h)/gi)]
  return Math.min(
    86_400_000,
    Math.ceil(parts.reduce((sum, [, count, unit = '']) => sum + Number(count) * (unitsMs[unit.toLowerCase()] ?? 0), 0)),
  )
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
  // OpenRouter says "Provider returned error", and puts what that provider said into the metadata.
  const raw = isObject(value.metadata) && typeof value.metadata.raw === 'string' ? value.metadata.raw : ''
  return typeof text === 'string' ? cut(raw === '' ? text : `${text}: ${sentence(parsed(raw)) ?? raw}`) : undefined
}

function parsed(text: string): unknown {
  const value = parseJson(text)
  return Array.isArray(value) ? value[0] : value
}

function describe(value: unknown): string {
  if (value instanceof Error) return value.message
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? String(value))
}

function word(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** The length of a refused request and the window, as far as the words of the refusal tell. */
type Lengths = Pick<FailureDetail, 'windowTokens' | 'sentTokens'>

/** Names that only a refusal for length has. */
const lengthCodes = /context_?length_?exceeded|exceed_context_size|context_?window_?exceeded/i

const size = '(?:context|prompt)[ _-]?(?:length|window|size|limit)'
const tooMuch = 'exceed|too (?:long|large)|larger|greater|longer|overflow|maximum|not enough|reached|\\d{3}'

const lengthWords: readonly RegExp[] = [
  new RegExp(`(?:${tooMuch}).{0,120}\\b${size}|\\b${size}.{0,120}(?:${tooMuch})`, 'i'),
  /\b(?:prompt|input|request|messages?|conversation)\b[^.]{0,40}\b(?:is|are|was)? ?too (?:long|many tokens)/i,
  /too many (?:input |prompt )?tokens|reduce the length of (?:the|your) (?:messages|prompt|input)|over the maximum context/i,
  /(?:token count|tokens?|(?:input|prompt) length)\b.{0,80}exceed|exceed\w*.{0,60}(?:number of (?:input )?tokens|token limit)/i,
  /max_tokens must be at least 1, got -\d|keep the first \d+ tokens when/i,
]

/** The limit of the answer alone is wrong, a rate is too high, or something other than text is too large. */
const others =
  /per[ -]?(?:minute|min|hour|day|second)\b|\bTPM\b|rate.?limit|in the last (?:minute|hour)|(?:supports at most|maximum allowed number of) .{0,20}(?:completion|output) tokens|(?:output|completion) token limit/i

/** These statuses explain the refusal, whatever the words. */
const otherStatuses: ReadonlySet<number> = new Set([401, 402, 403, 407, 408, 429, 504])

/**
 * @param error the body of the answer, or the error object of a stream
 * @returns undefined when the request was not refused for its length, else what the words say about it
 */
export function lengthRefusal(status: number | undefined, error: unknown): Lengths | undefined {
  if (status !== undefined && otherStatuses.has(status)) return undefined
  const text = plain(wordsIn(error))
  const isNamed = lengthCodes.test(text)
  if (others.test(text) && !isNamed) return undefined
  const lengths = lengthsIn(text)
  const proved = isNamed || (lengths.sentTokens ?? 0) > (lengths.windowTokens ?? Number.POSITIVE_INFINITY)
  if (status === 413 || proved) return lengths
  if (status !== undefined && status >= 500) return undefined
  return lengthWords.some((pattern) => pattern.test(text)) ? lengths : undefined
}

/** The members of an error that hold the vendor's own words; the others may repeat the request. */
const members = ['error', 'message', 'detail', 'msg', 'code', 'type', 'status', 'metadata', 'raw', 'n_prompt_tokens', 'n_ctx'] as const

function wordsIn(value: unknown, depth = 0): string {
  if (depth > 9) return ''
  if (typeof value === 'string') {
    const inner = /^\s*[[{]/.test(value) ? parseJson(value) : undefined
    return inner === undefined ? value.slice(0, 2_000) : wordsIn(inner, depth + 1)
  }
  if (Array.isArray(value)) return wordsIn(value[0], depth + 1)
  if (!isObject(value)) return typeof value === 'number' ? String(value) : ''
  return members.map((name) => (value[name] === undefined ? '' : `${name}: ${wordsIn(value[name], depth + 1)}`)).join('\n')
}

/** Removes the separators of thousands, and puts everything that is said on one line. */
function plain(text: string): string {
  return text.replace(/(?<=\d)[,._'\u00a0\u202f](?=\d{3}(?!\d))/g, '').replace(/\s+/g, ' ')
}

/** The first phrase of each number counts; the tokens of the prompt alone come before a sum of prompt and answer. */
const phrases: readonly RegExp[] = [
  /context limit:? (?<sent>\d+) \+ \d+ > (?<window>\d+)/i,
  /(?<sent>\d+) tokens? > (?<window>\d+)/i,
  /\(\d+ > (?<window>\d+) - (?<sent>\d+)\)/i,
  /\((?<sent>\d+)(?: tokens)?\) exceeds? [^.(]{0,80}\((?<window>\d+)(?: tokens)?\)/i,
  /n_prompt_tokens: (?<sent>\d+) n_ctx: (?<window>\d+)/,
  new RegExp(`\\b${size}(?: of this model)?(?: is| of| to|:| =|=)?(?: only)? ?\\(?(?<window>\\d+)`, 'i'),
  /(?<window>\d+) (?:tokens? )?maximum context/i,
  /(?:(?:token|model|context) limit(?: is| of|:)?|limit of|cannot exceed) ?(?<window>\d+)/i,
  /(?<sent>\d+) (?:in the messages|in the prompt|of text input)/i,
  /(?:has|contains) (?:at least )?(?<sent>\d+) (?:input |prompt )?tokens/i,
  /(?<sent>\d+) input tokens|(?:resulted in|first) (?<tokens>\d+) tokens/i,
  /(?:total length |prompt ?= ?|input length |requested (?:about )?)(?<sent>\d+)/i,
]

function lengthsIn(text: string): Lengths {
  const found: { [name: string]: string | undefined } = {}
  for (const pattern of phrases) {
    const { sent, tokens = sent, window } = pattern.exec(text)?.groups ?? {}
    found.sentTokens ??= tokens
    found.windowTokens ??= window
  }
  // Ignores numbers that cannot count the tokens of any model.
  const counts = Object.entries(found).filter(([, count]) => Number(count) >= 16 && Number(count) <= 1e9)
  return Object.fromEntries(counts.map(([name, count]) => [name, Number(count)]))
}
