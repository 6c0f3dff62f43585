/** Builds the chat.completions body of a request, with a prefix (options, system, messages) whose bytes stay equal within a run. */

import { isObject, type JsonObject } from '../../kit/json.ts'
import type { Part } from '../../runtime/event.ts'
import type { ChatRequest, Message, ToolSpec } from '../../runtime/port.ts'
import { portableName } from '../wire/call-arguments.ts'
import type { WireConfig } from '../wire/provider-settings.ts'

type Called = Extract<Part, { type: 'call' }>

/** Omits undefined members; the order of the others never changes. */
export function chatBody(request: ChatRequest, config: WireConfig): string {
  return JSON.stringify({
    model: request.model || config.model,
    max_tokens: request.maxOutputTokens ?? config.maxOutputTokens,
    temperature: request.temperature ?? config.temperature,
    messages: [...systemMessage(request.systemPrompt), ...request.messages.flatMap(messageOf)],
    tools: toolsOf(request.tools),
    ...(config.stream === false ? {} : { stream: true, stream_options: { include_usage: true } }),
  })
}

function systemMessage(content: string): object[] {
  return content === '' ? [] : [{ role: 'system', content }]
}

function messageOf(message: Message): object[] {
  if (message.role === 'user') return [{ role: 'user', content: contentOf(message) }]
  if (message.role === 'tool') return [{ role: 'tool', tool_call_id: message.callId, content: message.content }]
  return message.parts.length === 0 ? [] : [assistantMessage(message.parts)]
}

function contentOf({ content, pictures = [] }: Extract<Message, { role: 'user' }>): string | object[] {
  if (pictures.length === 0) return content
  const shown = pictures.map(({ type, base64 }) => ({ type: 'image_url', image_url: { url: `data:${type};base64,${base64}` } }))
  return [{ type: 'text', text: content }, ...shown]
}

/** The protocol allows one text, one thought and one list of calls per message, so their order is lost. */
function assistantMessage(parts: readonly Part[]): object {
  const content = said(parts, 'text')
  const calls = parts.filter((part) => part.type === 'call')
  return {
    role: 'assistant',
    content: calls.length > 0 ? content || null : content,
    reasoning_content: said(parts, 'thinking') || undefined,
    tool_calls: calls.length > 0 ? calls.map(callOf) : undefined,
  }
}

function said(parts: readonly Part[], type: 'text' | 'thinking'): string {
  return parts.map((part) => (part.type === type ? part.text : '')).join('')
}

/** Sends malformed arguments back as an empty object: many servers refuse the whole conversation because of them. */
function callOf({ id, name, input, meta }: Called): object {
  const signature = signatureOf(meta)
  return {
    id,
    type: 'function',
    function: { name: portableName(name), arguments: JSON.stringify(input) },
    extra_content: signature && { google: { thought_signature: signature } },
  }
}

function signatureOf(meta: JsonObject = {}): string | undefined {
  const found = [meta.compatible, meta.google].flatMap((each) => (isObject(each) && each.thoughtSignature ? [each.thoughtSignature] : []))
  return found[0] === undefined ? undefined : String(found[0])
}

/** Sorts by name, so that the order of the caller's registry does not matter. */
function toolsOf(tools: readonly ToolSpec[]): object[] | undefined {
  if (tools.length === 0) return undefined
  const sorted = tools.toSorted((a, b) => (a.name < b.name ? -1 : 1))
  return sorted.map(({ name, description, parameters }) => ({ type: 'function', function: { name, description, parameters } }))
}
