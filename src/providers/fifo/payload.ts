/** Encodes a request for the brain's FIFO as one compact line of the Messages API. */

import { isJsonObject, type JsonObject } from '../../kit/json.ts'
import type { Part } from '../../runtime/event.ts'
import type { ChatRequest, Message, ToolSpec } from '../../runtime/port.ts'
import { portableName } from '../wire/call-arguments.ts'
import { seedModel } from './seed-model.ts'

export const seedMaxTokens = 1024

export type PayloadOptions = { readonly model?: string; readonly maxTokens?: number }

/** Sends pure text as a plain string, because shell bridges expect it; JSON escapes keep it on one line. */
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

type Turn = { readonly role: 'user' | 'assistant'; readonly content: string | readonly JsonObject[] }

/** Merges neighbouring messages of one role, so that all results of a round go back together. */
function turnsOf(messages: readonly Message[]): Turn[] {
  const turns: Turn[] = []
  for (const turn of messages.map(turnOf)) {
    const last = turns.at(-1)
    if (turn.content.length === 0) continue
    if (last?.role === turn.role) turns[turns.length - 1] = { role: turn.role, content: [...blocksOf(last), ...blocksOf(turn)] }
    else turns.push(turn)
  }
  return turns
}

function turnOf(message: Message): Turn {
  if (message.role === 'user') return { role: 'user', content: message.content }
  if (message.role === 'tool') return { role: 'user', content: [resultOf(message)] }
  const [only, ...others] = message.parts
  if (only?.type === 'text' && others.length === 0) return { role: 'assistant', content: only.text }
  return { role: 'assistant', content: message.parts.map(blockOf) }
}

function blocksOf({ content }: Turn): readonly JsonObject[] {
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
