/** Describes the three APIs of models: what a request asks for, where an answer says what it used, and what a failure looks like. */

import { HttpError, quiet } from '../../http/http-error.ts'
import { isObject } from '../../kit/json.ts'
import { PlaneRefusal, refusalStatuses } from '../contract/plane-refusal.ts'
import type { Vendor } from './upstream-call.ts'

export type JsonFields = { readonly [name: string]: unknown }

export type RequestFacts = {
  readonly stream: boolean
  /** The longest answer that the request permits, in tokens. */
  readonly output: number | undefined
  /** The number of answers that it asks for. */
  readonly answers: number
  /** Tells whether the client itself asked for the counts of a stream. */
  readonly wantsCounts: boolean
}

/** Counts what an answer has shown so far. `whole`: the counts are final. `ended`: the vendor has sent the end. */
export type Tally = { input: number; output: number; bytes: number; whole: boolean; ended: boolean }

export type Wire = {
  readonly vendor: Vendor
  /** Below the version of the API. */
  readonly path: string
  /** @throws HttpError 400 for what cannot be metered */
  readonly factsOf: (body: JsonFields) => RequestFacts
  /** Returns the request with an answer of at most `output` tokens; undefined when the API refuses so few. */
  readonly limited: (body: JsonFields, output: number, address: string) => JsonFields | undefined
  /** Takes a whole answer, or one event of a stream. */
  readonly note: (tally: Tally, value: JsonFields) => void
  /** Tells whether this is the last event, after which the client may send its next request. */
  readonly isLast: (data: string, value: JsonFields) => boolean
  /** Tells whether this event exists only because the pass-through asked for it. */
  readonly isExtra: (value: JsonFields, facts: RequestFacts) => boolean
  /** Returns the event that ends a stream with a failure. */
  readonly stopped: (failure: Failure) => string
}

export function fieldsOf(value: unknown): JsonFields {
  return isObject(value) ? value : {}
}

/** Returns 0 for anything but a count. */
function countOf(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) && value > 0 ? Math.min(Math.ceil(value), 1e9) : 0
}

/** Raises the counts, because an event may repeat what an earlier one reported. */
function noteCounts(tally: Tally, { input, output }: { readonly input: number; readonly output: number }): void {
  tally.input = Math.max(tally.input, input)
  tally.output = Math.max(tally.output, output)
}

/** Adds a text of the answer. Counts that came before it were not the final ones. */
function noteText(tally: Tally, text: unknown): void {
  const bytes = textBytes(text)
  tally.bytes += bytes
  if (bytes > 0) tally.whole = false
}

/** Computes the output from the total too: some vendors count hidden thinking only there. */
function outputOf(usage: JsonFields, { input, output }: { readonly input: string; readonly output: string }): number {
  return Math.max(countOf(usage[output]), countOf(usage.total_tokens) - countOf(usage[input]))
}

/** Counts the UTF-8 bytes of all texts in a value. */
function textBytes(value: unknown): number {
  if (typeof value === 'string') return Buffer.byteLength(value)
  if (Array.isArray(value)) return value.reduce<number>((sum, item) => sum + textBytes(item), 0)
  return isObject(value) ? textBytes(Object.values(value)) : 0
}

/** Returns the name of the limit: OpenAI's newer models refuse `max_tokens`; many other servers know nothing else. */
function limitName(body: JsonFields, address: string): string {
  if (body.max_completion_tokens !== undefined && body.max_completion_tokens !== null) return 'max_completion_tokens'
  if (body.max_tokens !== undefined && body.max_tokens !== null) return 'max_tokens'
  return URL.parse(address)?.hostname === 'api.openai.com' ? 'max_completion_tokens' : 'max_tokens'
}

/** OpenAI's API allows this many. */
const mostAnswers = 128

/** @throws HttpError 400 for a number that vendors read in different ways */
function answersOf(name: string, n: unknown, most: number): number {
  if (n === undefined || n === null) return 1
  if (typeof n === 'number' && Number.isInteger(n) && n >= 1 && n <= most) return n
  throw new HttpError(400, 'unsupported_parameter', `${name}: ${JSON.stringify(n).slice(0, 80)} is not a whole number from 1 to ${most}`)
}

export const chatCompletions: Wire = {
  vendor: 'openai',
  path: '/chat/completions',
  factsOf(body) {
    // Some servers write this many answers and show the best of them.
    answersOf('best_of', body.best_of, 1)
    return {
      stream: body.stream === true,
      output: countOf(body.max_completion_tokens) || countOf(body.max_tokens) || undefined,
      answers: answersOf('n', body.n, mostAnswers),
      wantsCounts: fieldsOf(body.stream_options).include_usage === true,
    }
  },
  limited(body, output, address) {
    // A server that knows another limit would follow that one.
    const { max_tokens: _, max_completion_tokens: _new, n_predict: _own, ...rest } = body
    const counts = body.stream === true ? { stream_options: { ...fieldsOf(body.stream_options), include_usage: true } } : {}
    return { ...rest, [limitName(body, address)]: output, ...counts }
  },
  note(tally, { usage, choices }) {
    const counts = fieldsOf(usage)
    const input = countOf(counts.prompt_tokens)
    noteCounts(tally, { input, output: outputOf(counts, { input: 'prompt_tokens', output: 'completion_tokens' }) })
    const all = (Array.isArray(choices) ? choices : []).map(fieldsOf)
    for (const { delta, message } of all) noteText(tally, delta ?? message)
    // Some servers count in each chunk; only an answer that ends has the final count.
    if (input > 0 && all.every(hasEnded)) tally.whole = true
  },
  isLast: (data) => data === '[DONE]',
  isExtra: ({ choices, usage }, { wantsCounts }) => !wantsCounts && isObject(usage) && Array.isArray(choices) && choices.length === 0,
  stopped: (failure) => `data: ${JSON.stringify(errorBody('openai', failure))}\n\n`,
}

function hasEnded({ message, finish_reason }: JsonFields): boolean {
  return message !== undefined || typeof finish_reason === 'string'
}

/** These parameters move a part of the input or of the work out of the request, where the plane cannot count it beforehand. */
const unmetered: { readonly [name: string]: string } = {
  background: 'an answer that continues without a connection cannot be metered',
  previous_response_id: 'the earlier answer would be input that is not in the request; send the whole input',
  conversation: 'the conversation would be input that is not in the request; send the whole input',
  prompt: 'the stored prompt would be input that is not in the request; send the whole input',
}

const ends: readonly unknown[] = ['response.completed', 'response.incomplete', 'response.failed']

export const openAiResponses: Wire = {
  vendor: 'openai',
  path: '/responses',
  factsOf(body) {
    for (const [name, why] of Object.entries(unmetered))
      if (body[name] !== undefined && body[name] !== null && body[name] !== false)
        throw new HttpError(400, 'unsupported_parameter', `${name}: ${why}`)
    return { stream: body.stream === true, output: countOf(body.max_output_tokens) || undefined, answers: 1, wantsCounts: true }
  },
  /** The API requires at least 16. */
  limited: (body, output) => (output < 16 ? undefined : { ...body, max_output_tokens: output }),
  note(tally, value) {
    const response = value.object === 'response' ? value : fieldsOf(value.response)
    const usage = fieldsOf(response.usage)
    const input = countOf(usage.input_tokens)
    noteCounts(tally, { input, output: outputOf(usage, { input: 'input_tokens', output: 'output_tokens' }) })
    if (value.object === 'response') noteText(tally, value.output)
    if (typeof value.type === 'string' && value.type.endsWith('.delta')) noteText(tally, value.delta)
    if (input > 0 && (value.object === 'response' || ends.includes(value.type))) tally.whole = true
  },
  isLast: (_, { type }) => ends.includes(type) || type === 'error',
  isExtra: () => false,
  stopped({ code, message }) {
    const response = { id: 'resp_stopped', object: 'response', status: 'failed', error: { code, message }, output: [], usage: null }
    return `event: response.failed\ndata: ${JSON.stringify({ type: 'response.failed', response })}\n\n`
  },
}

/** The vendor requires at least this many for thinking, and an answer must be longer than its thinking. */
const leastThinking = 1024

export const anthropicMessages: Wire = {
  vendor: 'anthropic',
  path: '/messages',
  factsOf(body) {
    return { stream: body.stream === true, output: countOf(body.max_tokens) || undefined, answers: 1, wantsCounts: true }
  },
  limited(body, output) {
    const thinking = fieldsOf(body.thinking)
    const budget = countOf(thinking.budget_tokens)
    if (budget === 0 || budget < output) return { ...body, max_tokens: output }
    if (output < 2 * leastThinking) return undefined
    return { ...body, max_tokens: output, thinking: { ...thinking, budget_tokens: Math.floor(output / 2) } }
  },
  note(tally, value) {
    const { type, message, usage, delta, content_block, content } = value
    const counts = totalOf(fieldsOf(type === 'message_start' ? fieldsOf(message).usage : usage))
    noteCounts(tally, counts)
    if (type === 'message') noteText(tally, content)
    if (type === 'content_block_start') noteText(tally, content_block)
    if (type === 'content_block_delta') noteText(tally, delta)
    if ((type === 'message' || type === 'message_delta') && counts.output > 0 && tally.input > 0) tally.whole = true
  },
  isLast: (_, { type }) => type === 'message_stop' || type === 'error',
  isExtra: () => false,
  stopped: (failure) => `event: error\ndata: ${JSON.stringify(errorBody('anthropic', failure))}\n\n`,
}

/** Adds the vendor's work before the answer, such as shortening the request: a list beside the counts of the answer has it. */
function totalOf(usage: JsonFields): { readonly input: number; readonly output: number } {
  const parts = (Array.isArray(usage.iterations) ? usage.iterations : []).map(fieldsOf)
  const sum = (counted: (one: JsonFields) => number) => parts.reduce((all, part) => all + counted(part), 0)
  const outputIn = ({ output_tokens }: JsonFields) => countOf(output_tokens)
  return { input: Math.max(inputOf(usage), sum(inputOf)), output: Math.max(outputIn(usage), sum(outputIn)) }
}

/** Adds the tokens that come from the cache, or go into it, which the vendor counts separately. */
function inputOf({ input_tokens, cache_creation_input_tokens, cache_read_input_tokens }: JsonFields): number {
  return countOf(input_tokens) + countOf(cache_creation_input_tokens) + countOf(cache_read_input_tokens)
}

/** `retryAfterS` is absent when the same request would fail again. */
export type Failure = { readonly status: number; readonly code: string; readonly message: string; readonly retryAfterS?: number }

/** Describes a failure. @throws any other error: a bug */
export function failureOf(error: unknown): Failure {
  if (error instanceof HttpError) return { status: error.status, code: error.code, message: error.message }
  if (!(error instanceof PlaneRefusal)) throw error
  const { code, message, details } = error
  const later = details.retry_after_ms
  return {
    // The tokens that other calls hold are free again in a moment, so the runner should not stop.
    ...{ status: details.shortage === 'soon' ? 429 : refusalStatuses[code], code, message },
    retryAfterS: later === undefined ? undefined : Math.max(1, Math.ceil(later / 1000)),
  }
}

function errorBody(vendor: Vendor, { status, code, message }: Failure): object {
  if (vendor === 'anthropic') return { type: 'error', error: { type: anthropicTypes[status] ?? usual(status, 'api_error'), message } }
  return { error: { message, type: openAiTypes[status] ?? usual(status, 'server_error'), param: null, code } }
}

/** Sets `x-should-retry`, which both vendors' libraries follow; without it they would repeat a request after 409 and 5xx. */
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
