/** Parses a mock fixture: the scripted replies of a model, one per call. Each error names its place in the file. */

import { errorText } from '../../kit/errors.ts'
import { isObject } from '../../kit/json.ts'
import type { FailureCode, Usage } from '../../runtime/event.ts'
import { ProviderFailure } from '../../runtime/port.ts'

export type ScriptedReply = {
  readonly text: string
  readonly thinking: string
  /** `raw` is the model's own text of the arguments: usually JSON, never checked here. */
  readonly calls: readonly { readonly name: string; readonly raw: string; readonly id?: string }[]
  /** The number of deltas that the text is split into. */
  readonly chunks: number
  readonly delayMs: number
  readonly usage?: Usage
  readonly error?: FailureCode
}

const codes: { readonly [word: string]: FailureCode } = {
  auth: 'auth',
  unauthorized: 'auth',
  rate_limit: 'rate_limit',
  ratelimit: 'rate_limit',
  timeout: 'timeout',
  network: 'network',
  connection_refused: 'network',
  server: 'server',
  server_error: 'server',
  bad_request: 'bad_request',
  bad_response: 'bad_response',
  context_length: 'context_length',
  too_large: 'too_large',
  empty: 'empty',
  refused: 'refused',
  aborted: 'aborted',
  unknown: 'unknown',
}

const replyKeys = ['text', 'thinking', 'tool_calls', 'chunks', 'delay_ms', 'usage', 'error']
const callKeys = ['name', 'arguments', 'id']
const usageKeys = ['input_tokens', 'output_tokens', 'cached_input_tokens']

/** @throws ProviderFailure `bad_request` that names `file` and the place of the error */
export function parseFixture(text: string, file: string): readonly ScriptedReply[] {
  const at = (place: string, problem: string) => new ProviderFailure('bad_request', `mock fixture "${file}": ${place} ${problem}`)
  const root = parse(text, (why) => at('the file', `is not JSON: ${why}`))
  if (!isObject(root)) throw at('the file', 'must be an object {"responses": [...]}')
  known({ value: root, keys: ['responses'], place: 'the file', at })
  const { responses } = root
  if (!Array.isArray(responses) || responses.length === 0)
    throw at('responses', `must be a list of at least one reply, is ${show(responses)}`)
  return responses.map((reply, index) => readReply(reply, { place: `responses[${index}]`, at }))
}

type Fault = (place: string, problem: string) => ProviderFailure
type Where = { readonly place: string; readonly at: Fault }

function readReply(reply: unknown, { place, at }: Where): ScriptedReply {
  if (!isObject(reply)) throw at(place, `must be an object, is ${show(reply)}`)
  known({ value: reply, keys: replyKeys, place, at })
  const where = (key: string) => ({ place: `${place}.${key}`, at })
  return {
    text: string(reply.text ?? '', where('text')),
    thinking: string(reply.thinking ?? '', where('thinking')),
    calls: readCalls(reply.tool_calls ?? [], where('tool_calls')),
    chunks: Math.max(1, count(reply.chunks ?? 1, where('chunks'))),
    delayMs: count(reply.delay_ms ?? 0, where('delay_ms')),
    ...(reply.usage === undefined ? {} : { usage: readUsage(reply.usage, where('usage')) }),
    ...(reply.error === undefined ? {} : { error: readCode(reply.error, where('error')) }),
  }
}

function readCalls(calls: unknown, { place, at }: Where): ScriptedReply['calls'] {
  if (!Array.isArray(calls)) throw at(place, `must be a list, is ${show(calls)}`)
  return calls.map((call, index) => {
    const here = `${place}[${index}]`
    if (!isObject(call)) throw at(here, `must be an object {"name", "arguments"}, is ${show(call)}`)
    known({ value: call, keys: callKeys, place: here, at })
    const raw = typeof call.arguments === 'string' ? call.arguments : JSON.stringify(call.arguments ?? {})
    const id = call.id === undefined ? {} : { id: string(call.id, { place: `${here}.id`, at }) }
    return { name: string(call.name, { place: `${here}.name`, at }), raw, ...id }
  })
}

function readUsage(usage: unknown, { place, at }: Where): Usage {
  if (!isObject(usage)) throw at(place, `must be an object, is ${show(usage)}`)
  known({ value: usage, keys: usageKeys, place, at })
  const cached = usage.cached_input_tokens
  return {
    inputTokens: count(usage.input_tokens ?? 0, { place: `${place}.input_tokens`, at }),
    outputTokens: count(usage.output_tokens ?? 0, { place: `${place}.output_tokens`, at }),
    ...(cached === undefined ? {} : { cachedInputTokens: count(cached, { place: `${place}.cached_input_tokens`, at }) }),
  }
}

function readCode(value: unknown, { place, at }: Where): FailureCode {
  const word = string(value, { place, at })
    .toLowerCase()
    .replace(/[\s-]+/g, '_')
  const code = Object.hasOwn(codes, word) ? codes[word] : undefined
  if (code === undefined) throw at(place, `must be one of ${Object.keys(codes).join(', ')}; is ${show(value)}`)
  return code
}

function known(at: { value: { readonly [key: string]: unknown }; keys: readonly string[]; place: string; at: Fault }): void {
  const stranger = Object.keys(at.value).find((key) => !at.keys.includes(key))
  if (stranger !== undefined) throw at.at(at.place, `has an unknown key ${show(stranger)}; known: ${at.keys.join(', ')}`)
}

function string(value: unknown, { place, at }: Where): string {
  if (typeof value !== 'string') throw at(place, `must be a string, is ${show(value)}`)
  return value.toWellFormed()
}

function count(value: unknown, { place, at }: Where): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0)
    throw at(place, `must be a whole number ≥ 0, is ${show(value)}`)
  return value
}

function show(value: unknown): string {
  return value === undefined ? 'missing' : JSON.stringify(value).slice(0, 60)
}

function parse(text: string, fault: (why: string) => ProviderFailure): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw fault(errorText(error))
  }
}
