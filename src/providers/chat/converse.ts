/** Talks to chat.completions: sends one request and reads the answer as a stream of events, or as one document without streaming. */

import { errorText } from '../../kit/errors.ts'
import { isObject, type JsonObject, parseJson } from '../../kit/json.ts'
import type { Part } from '../../runtime/event.ts'
import { type ChatRequest, type Message, ProviderFailure, type ToolSpec } from '../../runtime/port.ts'
import { picturesOf, withoutPictures, withPicturesAfterResults } from '../sent-messages.ts'
import { idMaker, portableName } from '../wire/call-arguments.ts'
import type { DialectRequest, Exchange } from '../wire/exchange.ts'
import { effortOf, type ProviderDeps, vendors, type WireConfig } from '../wire/provider-settings.ts'
import type { Body } from '../wire/reply-body.ts'
import { type ReplyReader, startReply } from './chat-reply.ts'
import { keepAlives, readEvents, unreadable } from './events.ts'

export async function converse(talk: DialectRequest): Promise<Exchange> {
  const { name, config, deps, request, wire, baseUrl, maxBytes, quirks } = talk
  const gemma = config.dialect && (await import('./gemma-wire.ts')).gemmaWire(config.dialect)
  const body = gemma?.body ?? chatBody
  const path = gemma ? '' : '/chat'
  const ask = () =>
    wire.ask(`${baseUrl}${path}/completions`, { method: 'POST', headers: headersFor(config.apiKey), body: body(request, config, quirks) })
  const hasPictures = request.metadata?.needs !== 'pictures' && request.messages.some((message) => picturesOf(message).length > 0)
  const again = (error: unknown) => {
    const learnt = learnQuirk(error, quirks, hasPictures)
    if (learnt === 'pictures') deps.log('warn', 'model refused the picture', { provider: name, why: errorText(error) })
    return learnt === undefined ? Promise.reject(error) : ask()
  }
  const answer = await ask().catch(again).catch(again)
  const model = request.model || config.model
  const reply = startReply({ provider: name, model, maxBytes, newId: idMaker(request.messages), log: deps.log, readText: gemma?.readText })
  if (answer.type === 'stream') {
    const { head, body } = answer
    return { next: readStream({ body, reply, sleep: deps.sleep, framed: isFramed(head.headers) }), reply: reply.result }
  }
  reply.takeWhole(answer.value)
  return { next: async () => reply.shown(), reply: () => ({ ...reply.result(), rawProviderPayload: answer.value }) }
}

/** Members of a request that servers are known to refuse, each with what they say about it. */
const refusable = {
  max_tokens: /max_completion_tokens/,
  stream_options: /stream_options|include_usage/,
  skip_special_tokens: /skip_special/,
  pictures: /image|vision|multi-?modal|mmproj/i,
} as const

/** Returns the member that the server was sent and refused; no later request has it. */
function learnQuirk(error: unknown, quirks: Set<string>, hasPictures: boolean): string | undefined {
  const [member] =
    Object.entries(refusable).find(
      ([name, says]) =>
        !quirks.has(name) && (hasPictures || name !== 'pictures') && error instanceof ProviderFailure && says.test(error.message),
    ) ?? []
  if (member === undefined || !(error instanceof ProviderFailure) || error.code !== 'bad_request') return undefined
  quirks.add(member)
  return member
}

/** A body with a length, or in chunks, reports a connection error when it breaks off. */
function isFramed(headers: Headers): boolean {
  return headers.has('content-length') || headers.has('transfer-encoding')
}

function headersFor(apiKey: string | undefined): { readonly [name: string]: string } {
  return { 'content-type': 'application/json', ...(apiKey ? vendors['openai-compatible'].headers(apiKey) : {}) }
}

type Stream = {
  readonly body: Body
  readonly reply: ReplyReader
  readonly sleep: ProviderDeps['sleep']
  /** Tells whether the end of the body proves that the body is complete: it does not where only closing the connection ends it. */
  readonly framed: boolean
}

const lastEvent = '[DONE]'

/** The longest wait for the end of the body after the last event, in ms: only a properly ended connection can be reused. */
const lateEndMs = 100

/** Reads a streamed reply: it takes all events of one body piece together, so that a burst of deltas becomes one chunk. */
function readStream({ body, reply, sleep, framed }: Stream): Exchange['next'] {
  const events = readEvents(named)
  let fault: { readonly error: unknown } | undefined
  let last = false
  let over = false

  function takeBytes(bytes: Uint8Array | undefined): void {
    over = bytes === undefined
    try {
      if (bytes === undefined) end(events.rest())
      else for (const event of events.take(bytes)) take(event)
    } catch (error) {
      fault = { error }
    }
  }

  function take(event: string): void {
    if (last) return
    if (isLast(event)) {
      last = true
      reply.ended('marked')
      return
    }
    const value = parseJson(event)
    if (value === undefined) throw unreadable('an event is not JSON', event)
    reply.take(value)
  }

  /** `rest` is an event that the body ended in: it is either complete after all, or the body was cut off. */
  function end(rest: string | undefined): void {
    if (last) return
    const isWhole = rest === undefined || isLast(rest) || parseJson(rest) !== undefined
    if (rest !== undefined && isWhole) take(rest)
    if (!last && isWhole && framed) reply.ended('unmarked')
  }

  return async () => {
    for (;;) {
      // Show the text that arrived before a fault, then throw the fault.
      const chunk = reply.shown()
      if (chunk !== undefined) return chunk
      if (fault !== undefined) throw fault.error
      if (over) return undefined
      if (last) await endOf(body, sleep)
      if (last) over = true
      else takeBytes(await body.next())
    }
  }
}

function isLast(event: string): boolean {
  return event.length < 16 && event.trim() === lastEvent
}

/** Drops keep-alives; an error event counts as an error in any form. */
function named(name: string, data: string): string {
  if (keepAlives.has(name)) return ''
  return name === 'error' ? `{"error":${parseJson(data) === undefined ? JSON.stringify(data) : data}}` : data
}

async function endOf(body: Body, sleep: ProviderDeps['sleep']): Promise<void> {
  const late = new AbortController()
  await Promise.race([drain(body), sleep(lateEndMs, late.signal)]).catch(() => {})
  late.abort()
}

async function drain(body: Body): Promise<void> {
  for (let bytes = await body.next(); bytes !== undefined; ) bytes = await body.next()
}

/** Omits undefined members; the order of the others never changes. */
export function chatBody(request: ChatRequest, config: WireConfig, quirks: ReadonlySet<string> = new Set()): string {
  const spoken = quirks.has('pictures') ? withoutPictures(request.messages) : withPicturesAfterResults(request.messages)
  return JSON.stringify({
    model: request.model || config.model,
    [quirks.has('max_tokens') ? 'max_completion_tokens' : 'max_tokens']: request.maxOutputTokens ?? config.maxOutputTokens,
    temperature: request.temperature ?? config.temperature,
    reasoning_effort: effortOf(request, config),
    messages: [...systemMessage(request.systemPrompt), ...spoken.flatMap(messageOf)],
    tools: toolsOf(request.tools),
    ...(config.stream === false
      ? {}
      : { stream: true, stream_options: quirks.has('stream_options') ? undefined : { include_usage: true } }),
  })
}

function systemMessage(content: string): object[] {
  return content.trim() === '' ? [] : [{ role: 'system', content }]
}

function messageOf(message: Message): object[] {
  if (message.role === 'user') return [{ role: 'user', content: contentOf(message) }]
  if (message.role === 'tool') return [{ role: 'tool', tool_call_id: message.callId, content: message.content }]
  return message.parts.length === 0 ? [] : [assistantMessage(message.parts)]
}

function contentOf(message: Extract<Message, { role: 'user' }>): string | object[] {
  const [{ content }, pictures] = [message, picturesOf(message)]
  if (pictures.length === 0) return content
  const shown = pictures.map(({ type, base64 }) => ({ type: 'image_url', image_url: { url: `data:${type};base64,${base64}` } }))
  return [{ type: 'text', text: content }, ...shown]
}

/** The protocol allows one text, one thought and one list of calls per message, so their order is lost. */
function assistantMessage(parts: readonly Part[]): object {
  const content = textOf(parts, 'text')
  const calls = parts.filter((part) => part.type === 'call')
  return {
    role: 'assistant',
    content: calls.length > 0 ? content || null : content,
    reasoning_content: textOf(parts, 'thinking') || undefined,
    tool_calls: calls.length > 0 ? calls.map(callOf) : undefined,
  }
}

function textOf(parts: readonly Part[], type: 'text' | 'thinking'): string {
  return parts.map((part) => (part.type === type ? part.text : '')).join('')
}

/** Sends malformed arguments back as an empty object: many servers refuse the whole conversation because of them. */
function callOf({ id, name, input, meta }: Extract<Part, { type: 'call' }>): object {
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
