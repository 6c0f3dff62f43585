/** Assembles a chat.completions reply from the events of a stream or from one complete answer. */

import { isObject, parseJson } from '../../kit/json.ts'
import { type ChatResponse, type Log, type ModelChunk, ProviderFailure } from '../../runtime/port.ts'
import type { WireReply } from '../wire/attempt.ts'
import { failureOf, truncated } from '../wire/failure-of-response.ts'
import { type Block, collectParts, type PartsOptions, type RawCall } from '../wire/reply-parts.ts'
import { collectCalls } from './calls.ts'
import { type Fields, isKeepAlive, listIn, reportedIn, stringIn, unreadable } from './shape.ts'

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

export function startReply(options: PartsOptions & { readonly model: string; readonly log: Log }) {
  const { provider } = options
  const collection = collectParts(options)
  const calls = collectCalls()
  let block: Block | undefined
  let pending = ''
  const chunks: ModelChunk[] = []
  let model = ''
  let finish = ''
  let sendsFinish = false
  let refused = false
  let end: 'marked' | 'unmarked' | undefined
  let strange: unknown
  let usage = reportedIn({})

  /** Adds text from an event that is known to contain nothing else. */
  function say(type: Block['type'], text: string): void {
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
  function choiceOf(event: unknown): Fields | undefined {
    if (!isObject(event)) throw unreadable('an event is no object', event)
    const error = event.object === 'error' ? event : event.error
    if (error !== undefined && error !== null) throw failureOf(error, provider)
    if (typeof event.model === 'string') model ||= event.model
    if (isObject(event.usage)) usage = reportedIn(event.usage)
    else if (event.choices === undefined || event.choices === null) strange ??= isKeepAlive(event) ? undefined : event
    const choice = listIn(event, 'choices')[0]
    if (choice === undefined) return undefined
    if (!isObject(choice)) throw unreadable('a choice is no object', event)
    if (choice.error !== undefined && choice.error !== null) throw failureOf(choice.error, provider)
    return choice
  }

  /** Reads a delta. Most deltas contain only a string of content, so each absent member costs one check. */
  function hear(said: Fields): void {
    const { content } = said
    if (said.reasoning_content || said.reasoning) say('thinking', stringIn(said, 'reasoning_content') || stringIn(said, 'reasoning'))
    if (typeof content === 'string') say('text', content)
    else if (content !== undefined && content !== null) for (const part of listIn(said, 'content')) hearPart(part)
    if (typeof said.refusal !== 'string' || said.refusal === '') return
    refused = true
    say('text', said.refusal)
  }

  function hearPart(part: unknown): void {
    if (!isObject(part)) throw unreadable('a part of "content" is no object', part)
    if (part.type === 'text') say('text', stringIn(part, 'text'))
    if (part.type !== 'thinking') return
    for (const thought of listIn(part, 'thinking')) if (isObject(thought)) say('thinking', stringIn(thought, 'text'))
  }

  /** Without a finish reason, a reply counts as complete only if it contains something and no call is unfinished. */
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
      if (!isObject(delta)) throw unreadable('"delta" is no object', choice)
      hear(delta)
      if (delta.tool_calls) for (const piece of listIn(delta, 'tool_calls')) collection.count(calls.take(piece))
      if (delta.function_call) collection.count(calls.take({ function: delta.function_call }))
    },
    /** Takes a complete answer, which is therefore at its end. */
    takeWhole(answer: unknown): void {
      const choice = choiceOf(answer)
      if (choice === undefined || !isObject(choice.message)) throw unreadable('no message in it', answer)
      finish = stringIn(choice, 'finish_reason') || 'other'
      hear(choice.message)
      for (const [place, call] of listIn(choice.message, 'tool_calls').entries()) collection.count(calls.take(call, place))
      if (choice.message.function_call) collection.count(calls.take({ function: choice.message.function_call }))
    },
    /** Ends the stream: 'marked' by a final event, or 'unmarked' at the end of a complete body. */
    ended(how: 'marked' | 'unmarked'): void {
      end ??= how
    },
    say,
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
