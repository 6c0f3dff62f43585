/** Recognises the refusals of a request for its length, and reads from each vendor's words how long the request was and what fits. */

import { isObject, parseJson } from '../../kit/json.ts'
import type { FailureDetail } from '../../runtime/port.ts'

export type Lengths = Pick<FailureDetail, 'windowTokens' | 'sentTokens'>

/** Names that only this refusal has. */
const codes = /context_?length_?exceeded|exceed_context_size|context_?window_?exceeded/i

const size = '(?:context|prompt)[ _-]?(?:length|window|size|limit)'
const tooMuch = 'exceed|too (?:long|large)|larger|greater|longer|overflow|maximum|not enough|reached|\\d{3}'

const words: readonly RegExp[] = [
  new RegExp(`(?:${tooMuch}).{0,120}\\b${size}|\\b${size}.{0,120}(?:${tooMuch})`, 'i'),
  /\b(?:prompt|input|request|messages?|conversation)\b[^.]{0,40}\b(?:is|are|was)? ?too (?:long|many tokens)/i,
  /too many (?:input |prompt )?tokens|reduce the length of (?:the|your) (?:messages|prompt|input)|over the maximum context/i,
  /(?:token count|tokens?|(?:input|prompt) length)\b.{0,80}exceed|exceed\w*.{0,60}(?:number of (?:input )?tokens|token limit)/i,
  /max_tokens must be at least 1, got -\d|keep the first \d+ tokens when/i,
]

/** The limit of the answer alone is wrong, a rate is too high, or something that is no text is too large. */
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
  const said = plain(wordsIn(error))
  const isNamed = codes.test(said)
  if (others.test(said) && !isNamed) return undefined
  const lengths = lengthsIn(said)
  const proved = isNamed || (lengths.sentTokens ?? 0) > (lengths.windowTokens ?? Number.POSITIVE_INFINITY)
  if (status === 413 || proved) return lengths
  if (status !== undefined && status >= 500) return undefined
  return words.some((pattern) => pattern.test(said)) ? lengths : undefined
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

/** Of each number the first phrase counts; the tokens of the prompt alone come before a sum of prompt and answer. */
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

function lengthsIn(said: string): Lengths {
  const found: { [name: string]: string | undefined } = {}
  for (const pattern of phrases) {
    const { sent, tokens = sent, window } = pattern.exec(said)?.groups ?? {}
    found.sentTokens ??= tokens
    found.windowTokens ??= window
  }
  // A number that is no count of tokens of any model is not believed.
  const counts = Object.entries(found).filter(([, count]) => Number(count) >= 16 && Number(count) <= 1e9)
  return Object.fromEntries(counts.map(([name, count]) => [name, Number(count)]))
}
