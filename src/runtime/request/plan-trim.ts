/** Plans one trim: which results become a line, which earlier messages are left out, and which middle of the turn becomes a summary. */

import type { Message } from '../port.ts'
import { callsIn, resultLine, shortInput } from './turn-messages.ts'

/** Messages of earlier turns, and those of this turn. */
export type TrimInput = { readonly earlier: readonly Message[]; readonly turn: readonly Message[] }

export type TrimOptions = TrimInput & {
  readonly runId: string
  /** Tells whether the model can read a result again. */
  readonly readable: boolean
  /** Tokens of a message. */
  readonly sizeOf: (message: Message) => number
  /** Tokens that the messages should have at most afterwards, and the most that they may have. */
  readonly goal: number
  readonly most: number
}

export type TrimPlan = {
  readonly lines: readonly string[]
  readonly omitted: number
  /** The messages of the turn that should become a summary of at most `tokens`. */
  readonly middle?: { readonly from: number; readonly until: number; readonly tokens: number }
}

/** The share of the goal that earlier turns may have, and that the last rounds of the turn may have when its middle is summarised. */
const earlierShare = 0.5
const lastShare = 0.5
/** A summary gets this share of the goal, at most so many tokens. */
const summaryShare = 0.15
const longestSummary = 2_048

/**
 * Shortens in this order, until the goal is reached: the oldest results of this turn; earlier turns beyond their share; the middle of the
 * turn; the other earlier turns; and, only if the request would not fit at all, results of the last round.
 */
export function planTrim(options: TrimOptions): TrimPlan {
  const { turn, earlier, sizeOf, goal, most } = options
  const last = Math.max(
    0,
    turn.findLastIndex(({ role }) => role === 'assistant'),
  )
  const lines = new Map<string, number>()
  let size = total(turn, sizeOf) + total(earlier, sizeOf)

  function shortenResults(from: number, until: number, limit: number): void {
    for (const saving of savings(options, from, until)) {
      if (size <= limit) return
      lines.set(saving.callId, saving.tokens)
      size -= saving.tokens
    }
  }

  shortenResults(0, last, goal)
  let omitted = omit(options, 0, Math.max(goal * earlierShare, goal - (size - total(earlier, sizeOf))))
  size -= total(earlier.slice(0, omitted), sizeOf)
  const middle = size > goal ? middleOf(options, last, lines) : undefined
  if (middle) size -= middle.saved
  if (size > goal) {
    const more = omit(options, omitted, goal - (size - total(earlier.slice(omitted), sizeOf)))
    size -= total(earlier.slice(omitted, more), sizeOf)
    omitted = more
  }
  shortenResults(last, turn.length, most)
  const { from, until, tokens } = middle ?? {}
  return {
    lines: [...lines.keys()],
    omitted,
    ...(from === undefined || until === undefined || tokens === undefined ? {} : { middle: { from, until, tokens } }),
  }
}

export function total<Item>(items: readonly Item[], sizeOf: (item: Item) => number): number {
  let sum = 0
  for (const item of items) sum += sizeOf(item)
  return sum
}

/** Returns the results of `turn` whose line is shorter, oldest first. */
function savings({ turn, runId, readable, sizeOf }: TrimOptions, from: number, until: number) {
  const calls = callsIn(turn)
  return turn.slice(from, until).flatMap((message) => {
    if (message.role !== 'tool') return []
    const line = resultLine(message, { call: calls.get(message.callId), runId, readable })
    const { pictures, ...rest } = message
    const tokens = pictures || line.length < message.content.length ? sizeOf(message) - sizeOf({ ...rest, content: line }) : 0
    return tokens > 0 ? [{ callId: message.callId, tokens }] : []
  })
}

/** Leaves out whole turns, oldest first, until the rest has at most `limit` tokens. @returns how many messages are left out then */
function omit({ earlier, sizeOf }: TrimOptions, from: number, limit: number): number {
  let size = total(earlier.slice(from), sizeOf)
  let at = from
  while (size > limit && at < earlier.length) {
    const next = earlier.findIndex(({ role }, index) => index > at && role === 'user')
    const end = next === -1 ? earlier.length : next
    size -= total(earlier.slice(at, end), sizeOf)
    at = end
  }
  return at
}

/**
 * The middle lies between the task and the last rounds, of which as many stay as their share allows, at least one. The evidence of the last
 * failed check stays: the middle is the longer part before or after it.
 */
function middleOf({ turn, sizeOf, goal }: TrimOptions, last: number, lines: ReadonlyMap<string, number>) {
  const from = turn[0]?.role === 'user' ? 1 : 0
  const sizeAfter = (message: Message) => sizeOf(message) - (message.role === 'tool' ? (lines.get(message.callId) ?? 0) : 0)
  let [until, rest] = [last, total(turn.slice(last), sizeAfter)]
  for (let at = last - 1; at >= from; at -= 1) {
    rest += sizeAfter(turn[at] as Message)
    if (rest > goal * lastShare) break
    if (turn[at]?.role === 'assistant') until = at
  }
  const tokens = Math.floor(Math.min(longestSummary, goal * summaryShare))
  const evidence = turn.findLastIndex((message) => message.role === 'user' && message.isEvidence)
  const parts =
    evidence < from || evidence >= until ? [[from, until] as const] : [[from, evidence] as const, [evidence + 1, until] as const]
  const middles = parts.map(([from, until]) => ({ from, until, tokens, saved: total(turn.slice(from, until), sizeAfter) - tokens }))
  const [middle] = middles.filter(({ from, until, saved }) => until > from && saved > 0).toSorted((a, b) => b.saved - a.saved)
  return middle
}

/** Returns the messages as a text for the model that summarises, with at most `bytes` characters: the beginning and the end of it. */
export function materialOf(messages: readonly Message[], bytes: number): string {
  const text = messages.map(spoken).join('\n')
  if (text.length <= bytes) return text
  const head = Math.floor(bytes / 3)
  return `${text.slice(0, head)}\n[… ${text.length - bytes} characters left out …]\n${text.slice(head - bytes)}`.toWellFormed()
}

function spoken(message: Message): string {
  if (message.role === 'user') return `user: ${message.content}`
  if (message.role === 'tool') return `${message.isError ? 'error' : 'result'} of ${message.name}: ${message.content}`
  return message.parts
    .map((part) =>
      part.type === 'call' ? `call: ${part.name} ${JSON.stringify(part.input)}` : part.type === 'text' ? `assistant: ${part.text}` : '',
    )
    .filter((line) => line !== '')
    .join('\n')
}

/** Lists the calls with their outcome, newest last, in at most `bytes` characters: what remains when no model summarises. */
export function callList(messages: readonly Message[], bytes: number): string {
  const ok = new Map(messages.flatMap((message) => (message.role === 'tool' ? [[message.callId, !message.isError] as const] : [])))
  const earlier = messages.flatMap((message) => (message.role === 'user' ? [message.content] : []))
  const calls = [...callsIn(messages).values()].map(
    ({ id, name, input }) => `- ${name} ${shortInput(input)}: ${ok.get(id) ? 'done' : 'failed'}`,
  )
  const all = [...earlier, ...calls].join('\n')
  return (all.length <= bytes ? all : `[… ${calls.length} calls in all …]\n${all.slice(-bytes)}`).toWellFormed()
}
