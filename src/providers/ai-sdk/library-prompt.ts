/** Translates our request for the vendor libraries, with a prefix (tools, system, messages) that does not change within a run. */

import type { JSONSchema7, LanguageModelV4CallOptions, LanguageModelV4FunctionTool, LanguageModelV4Message } from '@ai-sdk/provider'
import { isJsonObject, type JsonObject } from '../../kit/json.ts'
import type { Part } from '../../runtime/event.ts'
import type { ChatRequest, Message, ToolSpec } from '../../runtime/port.ts'
import { portableName } from '../wire/call-arguments.ts'
import type { WireConfig } from '../wire/provider-settings.ts'

type Namespaced = { [provider: string]: JsonObject }

/** Vendor-specific options besides the prompt; they go into `providerOptions`. */
export type Marks = {
  readonly call?: Namespaced
  /** Marks the system message and the last tool: the ends of the two fixed parts of the prefix. */
  readonly prefixEnd?: Namespaced
}

export function callOptions(at: {
  request: ChatRequest
  config: WireConfig
  marks: Marks
  signal: AbortSignal
}): LanguageModelV4CallOptions {
  const { request, config, marks } = at
  return {
    prompt: [...systemMessage(request.systemPrompt, marks), ...request.messages.flatMap(messageOf)],
    tools: toolsOf(request.tools, marks),
    temperature: request.temperature ?? config.temperature,
    maxOutputTokens: request.maxOutputTokens ?? config.maxOutputTokens,
    providerOptions: marks.call,
    abortSignal: at.signal,
  }
}

function systemMessage(content: string, marks: Marks): LanguageModelV4Message[] {
  return content === '' ? [] : [{ role: 'system', content, providerOptions: marks.prefixEnd }]
}

/** Sorts by name, so that the order of the caller's registry does not matter. */
function toolsOf(tools: readonly ToolSpec[], marks: Marks): LanguageModelV4FunctionTool[] | undefined {
  if (tools.length === 0) return undefined
  const sorted = tools.toSorted((a, b) => (a.name < b.name ? -1 : 1))
  return sorted.map((tool, index) => ({
    type: 'function',
    name: tool.name,
    description: tool.description,
    inputSchema: schemaOf(tool),
    ...(index === sorted.length - 1 && marks.prefixEnd !== undefined ? { providerOptions: marks.prefixEnd } : {}),
  }))
}

/** Copies the schema as a mutable value, which the libraries' type requires. */
function schemaOf(tool: ToolSpec): JSONSchema7 {
  return JSON.parse(JSON.stringify(tool.parameters))
}

function messageOf(message: Message): LanguageModelV4Message[] {
  if (message.role === 'user') return [{ role: 'user', content: [{ type: 'text', text: message.content }] }]
  if (message.role === 'tool') return [resultMessage(message)]
  const content = message.parts.map(partOf)
  return content.length === 0 ? [] : [{ role: 'assistant', content }]
}

function resultMessage(message: Extract<Message, { role: 'tool' }>): LanguageModelV4Message {
  const output = { type: message.isError ? ('error-text' as const) : ('text' as const), value: message.content }
  return { role: 'tool', content: [{ type: 'tool-result', toolCallId: message.callId, toolName: portableName(message.name), output }] }
}

/** Returns `meta` unchanged: the vendor checks signatures and encrypted reasoning byte for byte. */
function partOf(part: Part) {
  const providerOptions = part.meta === undefined ? {} : { providerOptions: namespaces(part.meta) }
  if (part.type === 'text') return { type: 'text' as const, text: part.text, ...providerOptions }
  if (part.type === 'thinking') return { type: 'reasoning' as const, text: part.text, ...providerOptions }
  return { type: 'tool-call' as const, toolCallId: part.id, toolName: portableName(part.name), input: part.input, ...providerOptions }
}

function namespaces(meta: JsonObject): Namespaced {
  const result: Namespaced = {}
  for (const [provider, values] of Object.entries(meta)) if (isJsonObject(values)) result[provider] = values
  return result
}
