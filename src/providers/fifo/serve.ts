/** Serves the other side of the brain's FIFOs: turns a Messages API payload into our request, and our answer into such a message. */

import { isJsonObject, isObject, type JsonObject, parseJson } from '../../kit/json.ts'
import type { Part } from '../../runtime/event.ts'
import type { ChatRequest, ChatResponse, Message, Schema, ToolSpec } from '../../runtime/port.ts'
import { readArguments, soundObject } from '../wire/call-arguments.ts'

export type ReadPayload = { readonly ok: true; readonly request: ChatRequest } | { readonly ok: false; readonly message: string }

/** `model` replaces the payload's model, which often names a model of another vendor; "" leaves the choice to the provider. */
export function readPayload(frame: string, model: string): ReadPayload {
  const payload = parseJson(frame)
  if (!isObject(payload)) return { ok: false, message: 'the payload is not a JSON object' }
  if (!Array.isArray(payload.messages)) return { ok: false, message: 'the payload has no "messages"' }
  const names = new Map<string, string>()
  const messages = payload.messages.flatMap((message: unknown) => messagesOf(message, names))
  if (messages.length === 0) return { ok: false, message: 'the payload has no message with a text' }
  const tools = Array.isArray(payload.tools) ? payload.tools.flatMap(specOf) : []
  const { max_tokens: most, temperature } = payload
  return {
    ok: true,
    request: {
      systemPrompt: textOf(payload.system),
      messages,
      tools,
      model,
      ...(isCount(most) ? { maxOutputTokens: most } : {}),
      ...(typeof temperature === 'number' && temperature >= 0 && temperature <= 2 ? { temperature } : {}),
    },
  }
}

/** Encodes a message of the Messages API on one line. */
export function messageOf({ parts, stop, usage, model }: ChatResponse, id: string): string {
  const content = parts.flatMap(blockOf)
  return JSON.stringify({
    id,
    type: 'message',
    role: 'assistant',
    content,
    model,
    stop_reason: stopReason(stop),
    stop_sequence: null,
    usage: { input_tokens: usage.inputTokens, output_tokens: usage.outputTokens },
  })
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0
}

function stopReason(stop: ChatResponse['stop']): string {
  if (stop === 'tool_calls') return 'tool_use'
  if (stop === 'length') return 'max_tokens'
  return stop === 'content_filter' ? 'refusal' : 'end_turn'
}

function blockOf(part: Part): JsonObject[] {
  if (part.type === 'text') return part.text === '' ? [] : [{ type: 'text', text: part.text }]
  if (part.type === 'call') return [{ type: 'tool_use', id: part.id, name: part.name, input: part.input }]
  return []
}

/** Splits one of their messages into several of ours, because our tool results are separate messages. */
function messagesOf(message: unknown, names: Map<string, string>): Message[] {
  if (!isObject(message)) return []
  const blocks = blocksOf(message.content)
  if (message.role === 'assistant') {
    const parts = blocks.flatMap((block) => partOf(block, names))
    return parts.length === 0 ? [] : [{ role: 'assistant', parts }]
  }
  const results = blocks.flatMap((block) => resultOf(block, names))
  const text = textOf(blocks.filter(({ type }) => type === 'text'))
  return [...results, ...(text === '' ? [] : [{ role: 'user' as const, content: text }])]
}

type RequestBlock = { readonly [key: string]: unknown }

function blocksOf(content: unknown): readonly RequestBlock[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return Array.isArray(content) ? content.filter(isObject) : []
}

function partOf(block: RequestBlock, names: Map<string, string>): Part[] {
  if (block.type === 'text') return typeof block.text === 'string' ? [{ type: 'text', text: block.text }] : []
  const { id, name, input } = block
  if (block.type !== 'tool_use' || typeof id !== 'string' || typeof name !== 'string') return []
  names.set(id, name)
  return [{ type: 'call', id, name, ...readArguments(JSON.stringify(input ?? {})) }]
}

function resultOf({ type, tool_use_id: callId, content, is_error: isError }: RequestBlock, names: Map<string, string>): Message[] {
  if (type !== 'tool_result' || typeof callId !== 'string') return []
  return [{ role: 'tool', callId, name: names.get(callId) ?? 'tool', content: textOf(content), isError: isError === true }]
}

/** Accepts a string, or the text blocks of a list. */
function textOf(content: unknown): string {
  return blocksOf(content)
    .map(({ text }) => (typeof text === 'string' ? text : ''))
    .join('')
}

function specOf(tool: unknown): ToolSpec[] {
  if (!isObject(tool) || typeof tool.name !== 'string') return []
  const { name, description, input_schema: schema } = tool
  return [{ name, description: typeof description === 'string' ? description : '', parameters: schemaOf(schema) }]
}

function schemaOf(schema: unknown): Schema {
  const sound = isObject(schema) ? soundObject(schema) : undefined
  const { properties, required, ...rest } = sound ?? {}
  return {
    ...rest,
    type: 'object',
    ...(isJsonObject(properties) ? { properties } : {}),
    ...(Array.isArray(required) ? { required: required.filter((name) => typeof name === 'string') } : {}),
  }
}
