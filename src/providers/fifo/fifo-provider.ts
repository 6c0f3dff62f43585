/** Provides a model behind two FIFOs: the process that reads `brain_in` and writes `brain_out` is the model. */

import { isJsonObject, isObject, type JsonObject } from '../../kit/json.ts'
import { recoverEchoed } from '../../kit/wire.ts'
import type { Part, Usage } from '../../runtime/event.ts'
import {
  type ChatRequest,
  type ChatResponse,
  type Message,
  type ModelChunk,
  type Provider,
  ProviderFailure,
  type ToolSpec,
} from '../../runtime/port.ts'
import type { AskBrain } from '../provider-kind.ts'
import { sentMessages, signParts } from '../sent-messages.ts'
import { assertUsable } from '../usable-reply.ts'
import { idMaker, portableName, readArguments, soundObject, unread } from '../wire/call-arguments.ts'
import { cut } from '../wire/failure-of-response.ts'
import { seedModel } from './seed-model.ts'

export type FifoProviderOptions = PayloadOptions & { readonly name: string; readonly ask: AskBrain; readonly contextTokens?: number }

export function createFifoProvider({ name, ask, contextTokens = 100_000, ...options }: FifoProviderOptions): Provider {
  return {
    name,
    capabilities: () => ({ streaming: false, tools: true, thinking: true, contextTokens }),
    async *chat(request, signal): AsyncGenerator<ModelChunk> {
      const model = request.model || options.model || seedModel
      const maker = { provider: name, host: '', model }
      const sent = { ...request, messages: sentMessages(request.messages, { ...maker, bindsPrefix: true }) }
      const reply = await ask(`${payloadOf(sent, options)}\n\n`, signal)
      if (signal.aborted) throw new ProviderFailure('aborted', `provider "${name}": cancelled`, { provider: name })
      if (!reply.ok) throw silent(name, reply.why)
      const answer = readAnswer(reply.answer, { provider: name, model, newId: idMaker(request.messages) })
      const response = assertUsable({ ...answer, parts: signParts(answer.parts, maker) })
      for (const part of response.parts) if (part.type !== 'call' && part.text !== '') yield { type: part.type, text: part.text }
      yield { type: 'done', response }
    },
  }
}

function silent(name: string, why: string): ProviderFailure {
  const reasons: { readonly [why: string]: string } = {
    unread: "nobody reads brain_in; is the brain's bridge running?",
    died: "the brain's bridge ended during the question, and again when the question was repeated; its messages are in the log",
    down: "the brain's bridge ended and is not started again yet",
    timeout: "the brain's bridge took the question and did not answer in time",
    too_long: 'the answer is longer than allowed',
  }
  const code = why === 'too_long' ? 'too_large' : 'timeout'
  return new ProviderFailure(code, `provider "${name}": ${reasons[why] ?? why}`, { provider: name })
}

type AnswerOptions = { readonly provider: string; readonly model: string; readonly newId: (wanted: string) => string }

/**
 * @throws ProviderFailure `server` for the bridge's own word "fatal", `timeout` for every other error, which may pass, and `bad_response`
 * for an invalid answer
 */
export function readAnswer(frame: string, { provider, model, newId }: AnswerOptions): ChatResponse {
  const answer = recoverEchoed(frame)
  if (!isObject(answer)) throw bad(provider, `no JSON object: ${cut(frame)}`)
  // A bridge may include `error` in every answer, with null for no error.
  if (answer.error !== undefined && answer.error !== null) throw bridgeFailure(provider, answer.error)
  if (!Array.isArray(answer.content)) throw bad(provider, `no content: ${cut(frame)}`)
  const blocks: readonly unknown[] = answer.content
  const parts = blocks.flatMap((block) => (isObject(block) ? partOf(block, newId) : []))
  const named = typeof answer.model === 'string' && answer.model !== '' ? answer.model : model
  return {
    parts,
    stop: stopOf(answer.stop_reason, parts),
    usage: usageOf(answer.usage),
    model: named,
    provider,
    rawProviderPayload: answer,
  }
}

function bridgeFailure(provider: string, error: unknown): ProviderFailure {
  const detail = isObject(error) ? error.message : error
  const words = typeof detail === 'string' ? detail : JSON.stringify(error)
  return new ProviderFailure(error === 'fatal' ? 'server' : 'timeout', `provider "${provider}": the brain's bridge says "${cut(words)}"`, {
    provider,
  })
}

function bad(provider: string, what: string): ProviderFailure {
  return new ProviderFailure('bad_response', `provider "${provider}": the brain answered with ${what}`, { provider })
}

function partOf(block: { readonly [key: string]: unknown }, newId: AnswerOptions['newId']): Part[] {
  if (block.type === 'text') return typeof block.text === 'string' ? [{ type: 'text', text: block.text.toWellFormed() }] : []
  if (block.type === 'tool_use') return [callOf(block, newId)]
  const sound = soundObject(block)
  if (sound === undefined || (block.type !== 'thinking' && block.type !== 'redacted_thinking')) return []
  return [{ type: 'thinking', text: typeof block.thinking === 'string' ? block.thinking.toWellFormed() : '', meta: { block: sound } }]
}

/** A block without a name still counts as a call: the runtime tells the model that it could not read the call. */
function callOf(block: { readonly [key: string]: unknown }, newId: AnswerOptions['newId']): Part {
  const { id, name, input } = block
  const rawInput = typeof input === 'string' ? input : JSON.stringify(input ?? {})
  const call = { type: 'call' as const, id: newId(typeof id === 'string' ? id : 'call') }
  if (typeof name !== 'string') return { ...call, name: '', ...unread(JSON.stringify(block)) }
  return { ...call, name: name.toWellFormed(), ...readArguments(rawInput) }
}

function stopOf(reason: unknown, parts: readonly Part[]): ChatResponse['stop'] {
  if (parts.some(({ type }) => type === 'call')) return 'tool_calls'
  if (reason === 'max_tokens') return 'length'
  return reason === 'refusal' ? 'content_filter' : 'stop'
}

function usageOf(usage: unknown): Usage {
  const count = (key: string) => {
    const value = isObject(usage) ? usage[key] : undefined
    return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : 0
  }
  const cached = count('cache_read_input_tokens')
  const written = count('cache_creation_input_tokens')
  return {
    inputTokens: count('input_tokens') + cached + written,
    outputTokens: count('output_tokens'),
    ...(cached ? { cachedInputTokens: cached } : {}),
    ...(written ? { cacheWriteTokens: written } : {}),
  }
}

export const seedMaxTokens = 1024

export type PayloadOptions = { readonly model?: string; readonly maxTokens?: number }

/**
 * Encodes a request for the brain's FIFO as one compact line of the Messages API.
 * Sends pure text as a plain string, because shell bridges expect it; JSON escapes keep it on one line.
 */
export function payloadOf(request: ChatRequest, { model, maxTokens = seedMaxTokens }: PayloadOptions = {}): string {
  const { systemPrompt, messages, tools, temperature } = request
  return JSON.stringify({
    model: request.model || model || seedModel,
    max_tokens: request.maxOutputTokens ?? maxTokens,
    temperature,
    ...(systemPrompt.trim() === '' ? {} : { system: systemPrompt }),
    messages: turnsOf(messages),
    ...(tools.length === 0 ? {} : { tools: tools.map(toolOf) }),
  })
}

/** The form in which the claw lists a tool and the vendor accepts it. */
export function toolOf({ name, description, parameters }: ToolSpec) {
  return { name, description, input_schema: parameters }
}

type PayloadTurn = { readonly role: 'user' | 'assistant'; readonly content: string | readonly JsonObject[] }

/** Merges neighbouring messages of one role, so that all results of a round go back together. */
function turnsOf(messages: readonly Message[]): PayloadTurn[] {
  const turns: PayloadTurn[] = []
  for (const turn of messages.map(turnOf)) {
    const last = turns.at(-1)
    if (turn.content.length === 0) continue
    if (last?.role === turn.role) turns[turns.length - 1] = { role: turn.role, content: [...blocksOf(last), ...blocksOf(turn)] }
    else turns.push(turn)
  }
  return turns
}

function turnOf(message: Message): PayloadTurn {
  if (message.role === 'user') return { role: 'user', content: message.content }
  if (message.role === 'tool') return { role: 'user', content: [resultOf(message)] }
  const [only, ...others] = message.parts
  if (only?.type === 'text' && others.length === 0) return { role: 'assistant', content: only.text }
  return { role: 'assistant', content: message.parts.map(blockOf) }
}

function blocksOf({ content }: PayloadTurn): readonly JsonObject[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content
}

function resultOf({ callId, content, isError }: Extract<Message, { role: 'tool' }>): JsonObject {
  return { type: 'tool_result', tool_use_id: callId, content, ...(isError ? { is_error: true } : {}) }
}

/** Sends thinking back as exactly the block that arrived, because its signature covers the block. */
function blockOf(part: Part): JsonObject {
  if (part.type === 'text') return { type: 'text', text: part.text }
  if (part.type === 'call') return { type: 'tool_use', id: part.id, name: portableName(part.name), input: part.input }
  return isJsonObject(part.meta?.block) ? part.meta.block : { type: 'text', text: part.text }
}
