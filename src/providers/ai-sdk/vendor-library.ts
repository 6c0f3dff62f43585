/** Calls a vendor through its library: translates our request, serves as the library's fetch, and translates its parts back. */

import type {
  JSONSchema7,
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4FunctionTool,
  LanguageModelV4GenerateResult,
  LanguageModelV4Message,
  LanguageModelV4StreamPart,
} from '@ai-sdk/provider'
import { errorText } from '../../kit/errors.ts'
import { isJsonObject, type JsonObject } from '../../kit/json.ts'
import type { Part } from '../../runtime/event.ts'
import { type ChatRequest, type Message, type Picture, ProviderFailure, type ToolSpec } from '../../runtime/port.ts'
import { picturesOf } from '../sent-messages.ts'
import { idMaker, portableName } from '../wire/call-arguments.ts'
import type { DialectRequest, Exchange } from '../wire/exchange.ts'
import { cut } from '../wire/failure-of-response.ts'
import { effortOf, type WireConfig, type WireKind } from '../wire/provider-settings.ts'
import type { Body } from '../wire/reply-body.ts'
import { type Assembly, startAssembly } from './library-reply.ts'
import { type Repair, repairedPieces, repairMessages, repairResponses } from './repair.ts'

export async function converseThrough(kind: LibraryKind, talk: DialectRequest): Promise<Exchange> {
  const { name, config, deps, request, deadline, maxBytes } = talk
  const line = openLine(talk, libraries[kind])
  const library = await load(kind, talk, line)
  const model = request.model || config.model
  const assembly = startAssembly({ provider: name, model, maxBytes, newId: idMaker(request.messages), log: deps.log })
  const options = callOptions({ request, config, kind, signal: deadline.signal })
  const started = config.stream === false ? undefined : await orUndefined(library.doStream(options), line.hasDocument)
  if (started === undefined) return wholeAnswer(assembly, await library.doGenerate(options))
  return { next: readStream(assembly, started.stream), reply: assembly.result }
}

/** Explains a failed import: the libraries read the vendor's environment variables while they load, and fail on an empty base URL. */
async function load(
  kind: LibraryKind,
  { name, config, request, baseUrl }: DialectRequest,
  line: ReturnType<typeof openLine>,
): Promise<LanguageModelV4> {
  const model = request.model || config.model
  try {
    return await libraries[kind].model({ baseURL: baseUrl, apiKey: config.apiKey ?? '', model, fetch: line.fetch })
  } catch (error) {
    const why = errorText(error)
    const hint = 'is OPENAI_BASE_URL or ANTHROPIC_BASE_URL set but empty?'
    throw new ProviderFailure('unknown', `provider "${name}" could not be loaded: ${cut(why)}; ${hint}`, { provider: name })
  }
}

function openLine({ name, config, wire }: DialectRequest, library: Library) {
  const repair = library.repair()
  let document: unknown

  async function send(url: string, init: RequestInit): Promise<Response> {
    if (document !== undefined) return json(document)
    const answer = await wire.ask(url, init)
    if (answer.type === 'stream') {
      const { status, headers } = answer.head
      return new Response(streamOf(answer.body, repair, library.delta), { status, headers })
    }
    document = repair.document(answer.value)
    if (config.stream === false) return json(document)
    throw new ProviderFailure('bad_response', `provider "${name}" answered with JSON instead of a stream`, { provider: name })
  }

  return {
    fetch: Object.assign((input: string | URL | Request, init?: RequestInit) => send(String(input), init ?? {}), { preconnect() {} }),
    /** The server answered with plain JSON instead of a stream; the next `fetch` returns this answer and sends nothing. */
    hasDocument: () => document !== undefined,
  }
}

function streamOf(body: Body, repair: Repair, delta: Delta): ReadableStream<Uint8Array> {
  const next = repairedPieces(body, repair)
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const bytes = await next()
        if (bytes === undefined) controller.close()
        else controller.enqueue(mergeDeltas(bytes, delta))
      },
      cancel: body.close,
    },
    { highWaterMark: 0 },
  )
}

function json(value: unknown): Response {
  return new Response(JSON.stringify(value), { headers: { 'content-type': 'application/json' } })
}

/** Ignores the expected rejection of a complete answer where the library wanted a stream. */
async function orUndefined<T>(promise: PromiseLike<T>, expected: () => boolean): Promise<T | undefined> {
  try {
    return await promise
  } catch (error) {
    if (expected()) return undefined
    throw error
  }
}

function readStream(assembly: Assembly, stream: ReadableStream<LanguageModelV4StreamPart>): Exchange['next'] {
  const reader = stream.getReader()
  return async () => {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      const chunk = assembly.take(next.value)
      if (chunk !== undefined) return chunk
    }
    return undefined
  }
}

function wholeAnswer(assembly: Assembly, { content, response, finishReason, usage }: LanguageModelV4GenerateResult): Exchange {
  const chunks = content.flatMap((part) => assembly.takeWhole(part) ?? [])
  assembly.answeredBy(response?.modelId)
  assembly.finish(finishReason, usage)
  return { next: async () => chunks.shift(), reply: () => ({ ...assembly.result(), rawProviderPayload: response?.body }) }
}

type LibraryKind = Exclude<WireKind, 'openai-compatible' | 'plugin'>

type Effort = NonNullable<WireConfig['effort']>

type Library = {
  readonly marks: Marks
  /** Returns the vendor's options for a model that may answer with `most` tokens, and how many of these it may think with, if that is sent. */
  effort(level: Effort, model: string, most: number): { readonly options: JsonObject; readonly thinks?: number }
  /** Identifies an event with plain text in this protocol. */
  readonly delta: Delta
  /** Creates a repairer of the server's events for the library; each reply needs its own. */
  repair(): Repair
  model(build: {
    readonly baseURL: string
    readonly apiKey: string
    readonly model: string
    readonly fetch: typeof globalThis.fetch
  }): Promise<LanguageModelV4>
}

/** Lists the protocols that the vendor's own library handles, one row each, and imports the library with the first request. */
export const libraries: { readonly [kind in LibraryKind]: Library } = {
  anthropic: {
    // Eager tool streaming would trade valid arguments for speed.
    marks: { call: { toolStreaming: false }, prefixEnd: { anthropic: { cacheControl: { type: 'ephemeral' } } } },
    effort: thinkingOf,
    delta: { within: '"type":"text_delta"', key: '"text":"' },
    repair: repairMessages,
    async model({ baseURL, apiKey, model, fetch }) {
      const { createAnthropic } = await import('@ai-sdk/anthropic')
      return createAnthropic({ baseURL, apiKey, fetch }).languageModel(model)
    },
  },
  openai: {
    // The vendor stores nothing: reasoning arrives encrypted, and we send it again.
    marks: { call: { store: false } },
    // The library leaves the level out for a model that it does not know, and asks for summaries, which the vendor refuses to many accounts.
    effort: (reasoningEffort) => ({ options: { reasoningEffort, reasoningSummary: null, forceReasoning: true } }),
    delta: { within: '"type":"response.output_text.delta"', key: '"delta":"' },
    repair: repairResponses,
    async model({ baseURL, apiKey, model, fetch }) {
      const { createOpenAI } = await import('@ai-sdk/openai')
      return createOpenAI({ baseURL, apiKey, fetch }).responses(model)
    },
  },
}

/** Matches the models of Anthropic that think within a number of tokens; newer ones decide themselves, by the effort. */
const budgeted = /claude-(?:\d|(?:opus|sonnet|haiku)-4(?:[-.][0-5])?(?:$|[-@]\D|[-@]\d{8}))/

/** The part of an answer that is for thinking. */
const shares: { readonly [level in Effort]: number } = { none: 0, minimal: 0.05, low: 0.1, medium: 0.3, high: 0.6, xhigh: 0.8, max: 0.9 }

/** The vendor takes at least 1,024 tokens for thinking, so an answer of less than twice that has none. */
function thinkingOf(level: Effort, model: string, most: number): ReturnType<Library['effort']> {
  if (level === 'none') return { options: { thinking: { type: 'disabled' } } }
  if (model.includes('claude-') && !budgeted.test(model))
    return { options: { thinking: { type: 'adaptive', display: 'summarized' }, effort: level === 'minimal' ? 'low' : level } }
  if (most < 2048) return { options: {} }
  const thinks = Math.min(31_999, Math.max(1024, Math.floor(most * shares[level])))
  return { options: { thinking: { type: 'enabled', budgetTokens: thinks } }, thinks }
}

type Namespaced = { [provider: string]: JsonObject }

/** Vendor-specific options besides the prompt; they go into `providerOptions`, `call` under the name of the vendor. */
type Marks = {
  readonly call: JsonObject
  /** Ends a prefix that the vendor is to cache. A request has at most four of these, which is all that the vendor takes. */
  readonly prefixEnd?: Namespaced
}

/** Translates our request for the vendor libraries, with a prefix (tools, system, messages) that does not change within a run. */
function callOptions(at: { request: ChatRequest; config: WireConfig; kind: LibraryKind; signal: AbortSignal }): LanguageModelV4CallOptions {
  const { request, config, kind } = at
  const { marks, effort } = libraries[kind]
  const level = effortOf(request, config)
  const limit = request.maxOutputTokens ?? config.maxOutputTokens
  const most = limit ?? config.longestAnswer ?? 32_000
  const { options, thinks } = level ? effort(level, request.model || config.model, most) : {}
  return {
    prompt: [...systemMessage(request.systemPrompt, marks), ...conversation(request.messages, marks)],
    tools: toolsOf(request.tools, marks),
    temperature: request.temperature ?? config.temperature,
    // The library adds what is for thinking to the limit.
    maxOutputTokens: thinks ? most - thinks : limit,
    providerOptions: { [kind]: { ...marks.call, ...options } },
    abortSignal: at.signal,
  }
}

function systemMessage(content: string, marks: Marks): LanguageModelV4Message[] {
  return content.trim() === '' ? [] : [{ role: 'system', content, providerOptions: marks.prefixEnd }]
}

/**
 * Marks the last message, which the vendor then writes to its cache, and the message before the last reply, which was the last one of the
 * request before this. So a round reads what the round before wrote, however many calls and results lie between: from one mark, the vendor
 * looks back over no more than twenty blocks.
 */
function conversation(messages: readonly Message[], { prefixEnd }: Marks): LanguageModelV4Message[] {
  const ends = prefixEnd && [messages.length - 1, messages.findLastIndex(({ role }) => role === 'assistant') - 1]
  return messages.flatMap((message, at) =>
    ends?.includes(at) ? messageOf(message).map((each) => ({ ...each, providerOptions: prefixEnd })) : messageOf(message),
  )
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
  if (message.role === 'user')
    return [{ role: 'user', content: [{ type: 'text', text: message.content }, ...picturesOf(message).map(fileOf)] }]
  if (message.role === 'tool') return [resultMessage(message)]
  const content = message.parts.map(partOf)
  return content.length === 0 ? [] : [{ role: 'assistant', content }]
}

function resultMessage(message: Extract<Message, { role: 'tool' }>): LanguageModelV4Message {
  const [pictures, { content }] = [picturesOf(message).map(fileOf), message]
  const text = { type: message.isError ? ('error-text' as const) : ('text' as const), value: content }
  const output = pictures.length === 0 ? text : { type: 'content' as const, value: [{ type: 'text' as const, text: content }, ...pictures] }
  return { role: 'tool', content: [{ type: 'tool-result', toolCallId: message.callId, toolName: portableName(message.name), output }] }
}

function fileOf({ type, base64 }: Picture) {
  return { type: 'file' as const, mediaType: type, data: { type: 'data' as const, data: base64 } }
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

export type Delta = {
  /** Text that an event must contain before its delta, so that only plain text is merged. */
  readonly within: string
  /** The key and the opening quote of the text. */
  readonly key: string
}

/**
 * Merges neighbouring events that differ only in the text of their delta, because each event that a vendor's library need not validate saves
 * some microseconds. Passes all other events unchanged, byte for byte. Works on one piece of the body: an event that the end of the piece cuts stays unchanged.
 */
export function mergeDeltas(bytes: Uint8Array, delta: Delta): Uint8Array {
  // Latin 1 preserves every byte; in UTF-8 no byte of a multi-byte character looks like a quote, a backslash or a line end.
  const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
  const events = body.split('\n\n')
  if (events.length < 3) return bytes
  const rest = events.pop() ?? ''
  const merged: string[] = []
  let open: { readonly before: string; readonly after: string; text: string } | undefined
  for (const event of events) {
    const parts = partsOf(event, delta)
    if (open !== undefined && parts !== undefined && parts.before === open.before && parts.after === open.after) {
      open.text += parts.text
      continue
    }
    if (open !== undefined) merged.push(open.before + open.text + open.after)
    if (parts === undefined) merged.push(event)
    open = parts
  }
  if (open !== undefined) merged.push(open.before + open.text + open.after)
  return Buffer.from(`${merged.join('\n\n')}\n\n${rest}`, 'latin1')
}

function partsOf(event: string, { within, key }: Delta): { before: string; text: string; after: string } | undefined {
  const start = event.indexOf(key) + key.length
  if (start < key.length) return undefined
  const before = event.slice(0, start)
  if (!before.includes(within)) return undefined
  const end = closingQuote(event, start)
  return end < 0 ? undefined : { before, text: event.slice(start, end), after: event.slice(end) }
}

/** Finds the first quote after an even number of backslashes. */
function closingQuote(text: string, start: number): number {
  for (let at = text.indexOf('"', start); at >= 0; at = text.indexOf('"', at + 1)) {
    let slashes = 0
    while (text[at - 1 - slashes] === '\\' && at - 1 - slashes >= start) slashes++
    if (slashes % 2 === 0) return at
  }
  return -1
}
