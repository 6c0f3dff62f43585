/** Assembles a chat.completions reply from the events of a stream or from one complete answer. */

import { isObject, type JsonObject, parseJson } from '../../kit/json.ts'
import { type ChatResponse, type Log, type ModelChunk, ProviderFailure } from '../../runtime/port.ts'
import type { WireReply } from '../wire/exchange.ts'
import { failureOf, truncated } from '../wire/failure-of-response.ts'
import { collectParts, type PartsOptions, type RawCall, type ReplyBlock } from '../wire/reply-parts.ts'
import { isKeepAlive, type JsonFields, listIn, reportedIn, stringIn, unreadable } from './events.ts'
import type { TextReader } from './gemma-wire.ts'

export type ReplyReader = ReturnType<typeof startReply>

const stops: ReadonlyMap<string, ChatResponse['stop']> = new Map([
  ['stop', 'stop'],
  ['length', 'length'],
  ['content_filter', 'content_filter'],
  ['tool_calls', 'tool_calls'],
  ['function_call', 'tool_calls'],
])

function unfinished(provider: string): ProviderFailure {
  const message = `the reply of provider "${provider}" ended without a finish reason: it is only a part of the answer`
  return new ProviderFailure('bad_response', message, { provider, unfinished: true })
}

type ReplyOptions = PartsOptions & { readonly model: string; readonly log: Log; readonly readText?: TextReader | undefined }

export function startReply(options: ReplyOptions) {
  const { provider } = options
  const collection = collectParts(options)
  const calls = collectCalls()
  const tags = (options.readText ?? readThinkTags)(append, (call, at) => collection.count(calls.take(call, at)))
  let block: ReplyBlock | undefined
  let pending = ''
  const chunks: ModelChunk[] = []
  let model = ''
  let finish = ''
  let sendsFinish = false
  let refused = false
  let end: 'marked' | 'unmarked' | undefined
  let strange: unknown
  let usage = reportedIn({})

  function addText(type: ReplyBlock['type'], text: string): void {
    if (type === 'text') tags.take(text)
    else append(type, text)
  }

  function append(type: ReplyBlock['type'], text: string): void {
    if (text === '') return
    if (block?.type !== type) {
      flush()
      block = collection.begin(type)
    }
    pending += text
  }

  function flush(): void {
    if (block === undefined || pending === '') return
    const chunk = collection.add(block, pending)
    pending = ''
    if (chunk !== undefined) chunks.push(chunk)
  }

  /** Returns the first choice if there is one: we request only one. An event without choices, such as a keep-alive, is valid. */
  function choiceOf(event: unknown): JsonFields | undefined {
    if (!isObject(event)) throw unreadable('an event is not an object', event)
    const error = event.object === 'error' ? event : event.error
    if (error !== undefined && error !== null) throw failureOf(error, provider)
    if (typeof event.model === 'string') model ||= event.model
    if (isObject(event.usage)) usage = reportedIn(event.usage)
    else if (event.choices === undefined || event.choices === null) strange ??= isKeepAlive(event) ? undefined : event
    const choice = listIn(event, 'choices')[0]
    if (choice === undefined) return undefined
    if (!isObject(choice)) throw unreadable('a choice is not an object', event)
    if (choice.error !== undefined && choice.error !== null) throw failureOf(choice.error, provider)
    // The events of /completions, which `readText` reads, have their text elsewhere.
    const whole = { content: choice.text }
    return options.readText && isText(choice.text) ? { ...choice, delta: whole, message: whole } : choice
  }

  /** Reads a delta. Most deltas contain only a string of content, so each absent member costs one check. */
  function readDelta(delta: JsonFields): void {
    const { content } = delta
    if (delta.reasoning_content || delta.reasoning)
      addText('thinking', stringIn(delta, 'reasoning_content') || stringIn(delta, 'reasoning'))
    if (typeof content === 'string') addText('text', content)
    else if (content !== undefined && content !== null) for (const part of listIn(delta, 'content')) readPart(part)
    if (typeof delta.refusal !== 'string' || delta.refusal === '') return
    refused = true
    addText('text', delta.refusal)
  }

  function readPart(part: unknown): void {
    if (!isObject(part)) throw unreadable('a part of "content" is not an object', part)
    if (part.type === 'text') addText('text', stringIn(part, 'text'))
    if (part.type !== 'thinking') return
    for (const thought of listIn(part, 'thinking')) if (isObject(thought)) addText('thinking', stringIn(thought, 'text'))
  }

  /** Tells whether a reply without a finish reason is complete: it contains something, and no call is unfinished. */
  function isWhole(called: readonly RawCall[]): boolean {
    return (called.length > 0 || collection.parts().length > 0) && called.every(({ raw }) => isObject(parseJson(raw)))
  }

  return {
    /** Takes one parsed event of a stream. @throws when the value is not an event, or reports an error */
    take(event: unknown): void {
      const choice = choiceOf(event)
      if (choice === undefined) return
      sendsFinish ||= choice.finish_reason !== undefined
      if (choice.finish_reason) finish = stringIn(choice, 'finish_reason')
      if (finish === 'error') throw failureOf('the server ended the reply with an error and did not say which', provider)
      const { delta } = choice
      if (delta === undefined || delta === null) return
      if (!isObject(delta)) throw unreadable('"delta" is not an object', choice)
      readDelta(delta)
      if (finish !== '') tags.end()
      if (delta.tool_calls) for (const piece of listIn(delta, 'tool_calls')) collection.count(calls.take(piece))
      if (delta.function_call) collection.count(calls.take({ function: delta.function_call }))
    },
    /** Takes a complete answer, which is therefore at its end. */
    takeWhole(answer: unknown): void {
      const choice = choiceOf(answer)
      if (choice === undefined || !isObject(choice.message)) throw unreadable('no message in it', answer)
      finish = stringIn(choice, 'finish_reason') || 'other'
      readDelta(choice.message)
      tags.end()
      for (const [place, call] of listIn(choice.message, 'tool_calls').entries()) collection.count(calls.take(call, place))
      if (choice.message.function_call) collection.count(calls.take({ function: choice.message.function_call }))
    },
    /** Ends the stream: 'marked' by a final event, or 'unmarked' at the end of a complete body. */
    ended(how: 'marked' | 'unmarked'): void {
      tags.end()
      end ??= how
    },
    /** Returns the text added since the last call: neighbouring deltas of one kind form one chunk. */
    shown(): ModelChunk | undefined {
      flush()
      return chunks.shift()
    },
    /** @throws ProviderFailure when the reply did not reach its end */
    result(): WireReply {
      const called = calls.all()
      if (finish === '') {
        if (strange !== undefined) throw unreadable('an event without "choices"', strange)
        // A server that sends the member would have named a reason. [DONE] says only that the stream is over: a proxy sends it, too, after
        // the model behind it broke off. A server that never sends the member has no other way to say that a reply is whole.
        if (end !== undefined && sendsFinish) throw unfinished(provider)
        if (end === undefined || (end === 'unmarked' && !isWhole(called))) throw truncated(provider)
        options.log('debug', 'provider gave no finish reason', { provider, end })
        finish = called.length > 0 ? 'tool_calls' : 'stop'
      }
      for (const call of called) collection.call(call)
      const stop = refused && finish === 'stop' ? 'content_filter' : (stops.get(finish) ?? 'other')
      return { parts: collection.parts(), stop, model: model || options.model, usage, bytes: collection.bytes() }
    },
  }
}

const thinkTags = ['<think>', '<thinking>'] as const

/** Separates the thinking that a model writes into its text, between tags at the beginning alone: later, an answer may quote them. */
function readThinkTags(emit: Parameters<TextReader>[0]) {
  let state: 'before' | 'thinking' | 'after' = 'before'
  let end = ''
  let held = ''

  function begin(): boolean {
    const text = held.trimStart()
    const tag = thinkTags.find((each) => text.startsWith(each))
    if (tag === undefined && thinkTags.some((each) => each.startsWith(text))) return false
    // The empty lines between thinking and answer belong to neither.
    held = tag === undefined ? (end === '' ? held : text) : text.slice(tag.length)
    state = tag === undefined ? 'after' : 'thinking'
    end = tag === undefined ? end : tag.replace('<', '</')
    return true
  }

  function think(): boolean {
    const at = held.indexOf(end)
    const length = at < 0 ? held.length - partialEnd() : at
    emit('thinking', held.slice(0, length))
    held = held.slice(at < 0 ? length : at + end.length)
    if (at >= 0) state = 'before'
    return at >= 0
  }

  function pass(type: ReplyBlock['type'], text: string): false {
    emit(type, text)
    held = ''
    return false
  }

  function partialEnd(): number {
    for (let length = Math.min(end.length - 1, held.length); length > 0; length--) if (held.endsWith(end.slice(0, length))) return length
    return 0
  }

  return {
    take(text: string): void {
      held += text
      for (let isOn = true; isOn; ) isOn = state === 'before' ? begin() : state === 'thinking' ? think() : pass('text', held)
    },
    /** Passes on what may have been the beginning of a tag. */
    end: () => pass(state === 'thinking' ? 'thinking' : 'text', state === 'before' && end !== '' ? held.trimStart() : held),
  }
}

type OpenCall = {
  readonly index: number | undefined
  readonly isUnknown: boolean
  id: string
  name: string
  raw: string
  signature: string
}

type CallPiece = Readonly<OpenCall>

/**
 * Assembles tool calls from their pieces, and assigns each piece to a call by index, id and name, as far as the server sends them.
 * A piece in an unknown form still counts as a call: the runtime tells the model that it could not read the call.
 */
export function collectCalls() {
  const calls: OpenCall[] = []
  const byIndex = new Map<number, OpenCall>()

  function callOf(piece: CallPiece): OpenCall | undefined {
    if (piece.index !== undefined) return byIndex.get(piece.index)
    if (piece.id !== '') return calls.findLast((call) => call.id === piece.id)
    return piece.name === '' && !piece.isUnknown ? calls.at(-1) : undefined
  }

  function open(piece: CallPiece): void {
    const call = { ...piece }
    calls.push(call)
    if (call.index !== undefined) byIndex.set(call.index, call)
  }

  return {
    /** Takes one member of a `tool_calls`, with its `place` if it is known to be a separate call. Returns its text, for counting. */
    take(value: unknown, place?: number): string {
      const piece = readPiece(value, place)
      const call = callOf(piece)
      // After a readable call, an unknown piece is only a remark about that call.
      if (piece.isUnknown && call?.isUnknown === false) return ''
      if (call === undefined || begins(piece, call)) open(piece)
      else append(call, piece)
      return piece.id + piece.name + piece.raw
    },
    all: () => calls.filter(isCall).flatMap(withLooseArguments).map(rawCall),
  }
}

/** Some servers give several calls the same index: a new name, or arguments that start over, begin a new call. */
function begins(piece: CallPiece, call: OpenCall): boolean {
  if (piece.name === '' || call.name === '') return false
  if (piece.name !== call.name) return true
  const startsOver = piece.raw.trimStart().startsWith('{') || (piece.raw === '' && piece.id !== '' && piece.id !== call.id)
  return startsOver && isObject(parseJson(call.raw))
}

function append(call: OpenCall, piece: CallPiece): void {
  call.id ||= piece.id
  call.name ||= piece.name
  call.raw += piece.raw
  call.signature ||= piece.signature
}

function readPiece(value: unknown, place: number | undefined): CallPiece {
  const { id, index: sentIndex, extra_content: extra } = isObject(value) ? value : {}
  const index = place ?? sentIndex
  const google = isObject(extra) && isObject(extra.google) ? extra.google : {}
  return {
    index: typeof index === 'number' && Number.isSafeInteger(index) ? index : undefined,
    id: textOf(id).trim(),
    signature: textOf(google.thought_signature),
    ...(functionIn(value) ?? { name: '', raw: JSON.stringify(value), isUnknown: true }),
  }
}

/** Takes the name literally: a tool with another name is another tool. @returns undefined for a piece in an unknown form */
function functionIn(value: unknown): Pick<CallPiece, 'name' | 'raw' | 'isUnknown'> | undefined {
  if (!isObject(value)) return undefined
  const called = value.function ?? (Object.keys(value).every((key) => ownKeys.includes(key)) ? {} : undefined)
  if (!isObject(called) || !isText(called.name)) return undefined
  // Some servers send the arguments as an object instead of a string.
  const raw = isText(called.arguments) ? (called.arguments ?? '') : JSON.stringify(called.arguments)
  return { name: called.name ?? '', raw, isUnknown: false }
}

/** Keys that may occur beside the function, or in a piece without a function. */
const ownKeys = ['index', 'id', 'type', 'function', 'extra_content']

function isText(value: unknown): value is string | null | undefined {
  return value === undefined || value === null || typeof value === 'string'
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** Gives arguments that stand alone under the next index to the call before them, which has none. */
function withLooseArguments(call: OpenCall, at: number, calls: readonly OpenCall[]): OpenCall[] {
  const isBare = (each?: OpenCall) => each !== undefined && each.name !== '' && /^(?:\s*\{\s*\})?\s*$/.test(each.raw)
  const isLoose = (each?: OpenCall) => each !== undefined && each.name + each.id === '' && !each.isUnknown
  const next = calls[at + 1]
  if (isLoose(call) && isBare(calls[at - 1])) return []
  return next && isBare(call) && isLoose(next) ? [{ ...call, raw: next.raw }] : [call]
}

/** A piece without any content is not a call. */
function isCall(call: OpenCall): boolean {
  return call.id !== '' || call.name !== '' || call.raw.trim() !== ''
}

function rawCall({ id, name, raw, signature, isUnknown }: OpenCall): RawCall {
  const meta: JsonObject = signature === '' ? {} : { compatible: { thoughtSignature: signature.toWellFormed() } }
  return { id, name, raw, meta, ...(isUnknown ? { isUnknown } : {}) }
}
