/** Builds the messages of a turn from its events, and shortens them as a trim says: live, in a replay, and when a conversation resumes. */

import { canonical } from '../../kit/json.ts'
import { sha256 } from '../../kit/sha256.ts'
import { flat } from '../../kit/text.ts'
import type { Call, RunEvent, Trim } from '../event.ts'
import { picturesIn } from '../outcome.ts'
import type { Message } from '../port.ts'

/**
 * Returns the messages that this event adds: a prompt, a reply with its parts unchanged, or the results of a round in the order of its
 * calls.
 */
export function messagesOf(event: RunEvent): Message[] {
  switch (event.type) {
    case 'run.start':
      return event.continues ? [] : [{ role: 'user', content: event.prompt, ...picturesIn(event) }]
    case 'model.done':
    case 'judged':
      return [{ role: 'assistant', parts: event.parts }]
    case 'observe':
      return event.results.map(({ call, ok, text, ...more }) => ({
        role: 'tool',
        callId: call.id,
        name: call.name,
        content: text,
        isError: !ok,
        ...picturesIn(more),
      }))
    case 'retry':
      return [{ role: 'user', content: event.evidence, isEvidence: true }]
    default:
      return []
  }
}

/** The part of a trim that changes the messages of the turn. */
export type Shortening = Pick<Trim, 'lines' | 'summary' | 'readable'>

/** Returns the messages of a turn after a trim. Calls and results stay in pairs, and replies that remain stay as the model wrote them. */
export function shorten(messages: readonly Message[], { lines, summary, readable }: Shortening, runId: string): Message[] {
  const chosen = new Set(lines)
  const calls = callsIn(messages)
  const short = afterTrim(messages).map((message) => {
    if (message.role !== 'tool' || !chosen.has(message.callId)) return message
    const { pictures: _, ...rest } = message
    return { ...rest, content: resultLine(message, { call: calls.get(message.callId), runId, readable }) }
  })
  if (summary === undefined) return short
  return [...short.slice(0, summary.from), { role: 'user', content: summaryText(summary, readable) }, ...short.slice(summary.until)]
}

/** Marks replies, because the signature of thinking can cover all messages before it. */
export function afterTrim(messages: readonly Message[]): Message[] {
  return messages.map((message) => (message.role === 'assistant' && !message.isAfterTrim ? { ...message, isAfterTrim: true } : message))
}

export function callsIn(messages: readonly Message[]): ReadonlyMap<string, Call> {
  const parts = messages.flatMap((message) => (message.role === 'assistant' ? message.parts : []))
  return new Map(parts.flatMap((part) => (part.type === 'call' ? [[part.id, part] as const] : [])))
}

export type LineFacts = { readonly call: Call | undefined; readonly runId: string; readonly readable: boolean }

type ToolMessage = Extract<Message, { role: 'tool' }>

const longestArguments = 100

/** Returns the line that stands for a result which the request no longer has. */
export function resultLine({ callId, name, content, isError }: ToolMessage, { call, runId, readable }: LineFacts): string {
  const again = readable ? `result_read {"id":${JSON.stringify(resultId(runId, callId))}} reads it again` : 'call it again if you need it'
  return `[${isError ? 'error' : 'result'} of ${name} ${shortInput(call?.input)}, ${Buffer.byteLength(content)} bytes, left out to save room; ${again}]`.toWellFormed()
}

/** Returns the arguments of a call on one line, cut at 100 characters. */
export function shortInput(input: unknown = {}): string {
  const whole = flat(JSON.stringify(input))
  return whole.length > longestArguments ? `${whole.slice(0, longestArguments)}…`.toWellFormed() : whole
}

/** Names a result within its conversation: the end of the run's id and the call's own id, which may be used again in another run. */
export function resultId(runId: string, callId: string): string {
  return `${runId.slice(-runEnd)}.${callId}`
}

/** @returns the end of the run's id, and the call's id; undefined when the text has another form */
export function resultIdParts(id: string): { readonly run: string; readonly callId: string } | undefined {
  const at = id.indexOf('.')
  return at > 0 && at < id.length - 1 ? { run: id.slice(0, at), callId: id.slice(at + 1) } : undefined
}

const runEnd = 6

function summaryText({ text, by }: NonNullable<Trim['summary']>, readable: boolean): string {
  const author = by === 'model' ? 'a summary of it, written by the model' : 'its calls, without their results'
  const again = readable ? ' result_read without an id lists the results that can be read again.' : ''
  return `[BraidClaw left out the middle of this turn to save room; this is ${author}. The task above still holds.${again}]\n${text}`
}

/** Returns the digest of a turn's messages, which a replay compares. */
export function messagesDigest(messages: readonly Message[]): string {
  return sha256(canonical(messages))
}
