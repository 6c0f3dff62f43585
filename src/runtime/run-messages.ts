/** Holds the messages of one run, and makes each request fit into the window of its model. */

import { tokensOf } from '../kit/tokens.ts'
import type { ExternalEvent, RunEvent, Trim } from './event.ts'
import type { ChatRequest, Message, ModelWindow, ProviderFailure, Redact, SummariseTurn } from './port.ts'
import { endOf, type Question, think, unasked } from './think.ts'
import { afterTrim, callsIn, messagesDigest, messagesOf, resultLine, shorten, shortInput } from './turn-messages.ts'

export type RunMessagesOptions = {
  readonly runId: string
  /** Messages of earlier turns; the last `openMessages` of them belong to the turn that goes on. */
  readonly history: readonly Message[]
  readonly openMessages: number
  readonly request: Omit<ChatRequest, 'messages'>
  /** Absent: no request is trimmed. */
  readonly window?: ModelWindow
  /** Absent: the middle of a turn becomes a list of its calls. */
  readonly summarise?: SummariseTurn
  readonly redact: Redact
}

type RunMessages = {
  /** Adds what the event says, or shortens the messages as it says. */
  take(event: RunEvent): void
  all(): Message[]
  /** Returns the estimated tokens of the next request; 0 without a window. */
  size(): number
  /**
   * Returns the event that makes room before the next request; undefined when that fits, or nothing can be shortened.
   * @param refused the model refused the request for its length; the text, if any, is for the person
   */
  makeRoom(
    signal: AbortSignal,
    refused?: { readonly note?: string | undefined },
  ): Promise<Extract<RunEvent, { type: 'context.trimmed' }> | undefined>
}

/** A request beyond this share of the window is trimmed, to the second share in one step: each trim costs the provider's cache. */
const fullShare = 0.7
const goalShare = 0.4
/** The messages get at least this share of the window, however long the system prompt and the tools are. */
const leastShare = 0.1
/** A message has this many tokens besides its text, and a picture so many. */
const frameTokens = 8
const pictureTokens = 2_000
/** The text for a summary has at most this many characters for each token of the window. */
const materialCharacters = 1.5

export function createRunMessages({ runId, history, openMessages, request, window, summarise, redact }: RunMessagesOptions): RunMessages {
  let earlier = history.slice(0, history.length - openMessages)
  let turn = history.slice(history.length - openMessages)
  /** The note of a run that goes on: the results of its calls come first, because they belong to a reply of the history. */
  let note: Message[] = []
  const readable = request.tools.some(({ name }) => name === 'result_read')
  const sizes = new WeakMap<Message, number>()
  const state: { fixed?: number } = {}

  function sizeOf(message: Message): number {
    const known = sizes.get(message)
    if (known !== undefined) return known
    const size = frameTokens + tokensOf(textOf(message)) + picturesOf(message) * pictureTokens
    sizes.set(message, size)
    return size
  }

  /** The system prompt and the tools do not change during a run. */
  function fixedSize(): number {
    state.fixed ??= tokensOf(request.systemPrompt) + tokensOf(JSON.stringify(request.tools))
    return state.fixed
  }

  const size = () => fixedSize() + sum(earlier, sizeOf) + sum(turn, sizeOf)

  async function makeRoom(signal: AbortSignal, refused?: { readonly note?: string | undefined }) {
    if (window === undefined) return undefined
    const [before, tokens, factor] = [size(), window.tokens(), window.scale()]
    const room = tokens / factor
    if (!refused && before <= room * fullShare) return undefined
    const limitOf = (share: number) => Math.max(room * share - fixedSize(), room * leastShare)
    const [goal, most] = [limitOf(goalShare), limitOf(fullShare)]
    const plan = planTrim({ earlier, turn, runId, readable, sizeOf, goal, most })
    if (plan.lines.length === 0 && plan.omitted === 0 && plan.middle === undefined) return undefined
    const middle = plan.middle && {
      ...plan.middle,
      messages: shorten(turn, { lines: plan.lines, readable }, runId).slice(plan.middle.from, plan.middle.until),
    }
    const characters = Math.floor(room * materialCharacters)
    const summary = middle && (await summaryOf(middle, { characters, sizeOf, redact, signal, ...(summarise ? { summarise } : {}) }))
    const change = { lines: plan.lines, readable, ...(summary ? { summary: summary.summary } : {}) }
    const after = shorten(turn, change, runId)
    const kept = earlier.slice(plan.omitted)
    return {
      type: 'context.trimmed' as const,
      ...change,
      window: tokens,
      before: Math.ceil(before * factor),
      after: Math.ceil((fixedSize() + sum(kept, sizeOf) + sum(after, sizeOf)) * factor),
      omitted: plan.omitted,
      ...(refused ? { refused: true as const } : {}),
      ...(refused?.note ? { note: refused.note } : {}),
      ...(summary?.usage ? { usage: summary.usage } : {}),
      digest: messagesDigest(after),
    }
  }

  return {
    take(event: RunEvent): void {
      if (event.type === 'run.start' && event.continues && event.prompt !== '') note = [{ role: 'user', content: event.prompt }]
      if (event.type === 'think') turn.push(...note.splice(0))
      if (event.type !== 'context.trimmed') return void turn.push(...messagesOf(event))
      turn = shorten(turn, event, runId)
      if (event.omitted > 0) earlier = [omittedNote(event), ...afterTrim(earlier.slice(event.omitted))]
    },
    all: () => [...earlier, ...turn],
    size: () => (window === undefined ? 0 : Math.ceil(size() * window.scale())),
    makeRoom,
  }
}

type Middle = NonNullable<TrimPlan['middle']> & { readonly messages: readonly Message[] }

type SummaryPorts = Pick<RunMessagesOptions, 'summarise' | 'redact'> & {
  /** How much of the messages the model gets. */
  readonly characters: number
  readonly sizeOf: (message: Message) => number
  readonly signal: AbortSignal
}

/** A summary that fails, is empty or is longer than what it replaces is replaced by the list of calls. */
async function summaryOf({ from, until, tokens, messages }: Middle, { summarise, redact, characters, sizeOf, signal }: SummaryPorts) {
  const asked = { text: materialOf(messages, characters), maxTokens: tokens }
  // A summariser may never react to a cancel; the run does not wait for it.
  const answer = await Promise.race([summarise?.(asked, signal), endOf(signal)])
  const text = redact(answer?.text.trim() ?? '')
  const size = tokensOf(text)
  const isUsable = text !== '' && size < sum(messages, sizeOf) && size <= tokens * 2
  return {
    summary: {
      from,
      until,
      text: isUsable ? text : callList(messages, tokens * 2),
      by: isUsable ? ('model' as const) : ('runtime' as const),
    },
    ...(answer?.usage ? { usage: answer.usage } : {}),
  }
}

function sum(messages: readonly Message[], sizeOf: (message: Message) => number): number {
  let tokens = 0
  for (const message of messages) tokens += sizeOf(message)
  return tokens
}

function omittedNote({ omitted }: Pick<Trim, 'omitted'>): Message {
  return {
    role: 'user',
    content: `[${omitted} earlier messages of this conversation are not shown here any more; memory_search finds them]`,
  }
}

/** Returns what is sent of a message, without the names of its fields. */
function textOf(message: Message): string {
  if (message.role === 'tool') return `${message.callId} ${message.name} ${message.content}`
  if (message.role === 'user') return message.content
  return message.parts
    .map((part) => (part.type === 'call' ? JSON.stringify([part.id, part.name, part.malformed ?? part.input]) : part.text))
    .join('\n')
}

function picturesOf(message: Message): number {
  return message.role === 'user' ? (message.pictures?.length ?? 0) : 0
}

/** Messages of earlier turns, and those of this turn. */
type Conversation = { readonly earlier: readonly Message[]; readonly turn: readonly Message[] }

type TrimOptions = Conversation & {
  readonly runId: string
  /** Whether the model can read a result again. */
  readonly readable: boolean
  /** Tokens of a message. */
  readonly sizeOf: (message: Message) => number
  /** Tokens that the messages should have at most afterwards, and the most that they may have. */
  readonly goal: number
  readonly most: number
}

type TrimPlan = {
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
function planTrim(options: TrimOptions): TrimPlan {
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

function total(messages: readonly Message[], sizeOf: (message: Message) => number): number {
  let sum = 0
  for (const message of messages) sum += sizeOf(message)
  return sum
}

/** Returns the results of `turn` whose line is shorter, oldest first. */
function savings({ turn, runId, readable, sizeOf }: TrimOptions, from: number, until: number) {
  const calls = callsIn(turn)
  return turn.slice(from, until).flatMap((message) => {
    if (message.role !== 'tool') return []
    const line = resultLine(message, { call: calls.get(message.callId), runId, readable })
    const tokens = line.length < message.content.length ? sizeOf(message) - sizeOf({ ...message, content: line }) : 0
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

/** The middle lies between the task and the last rounds, of which as many stay as their share allows, at least one. */
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
  const saved = total(turn.slice(from, until), sizeAfter) - tokens
  return until > from && saved > 0 ? { from, until, tokens, saved } : undefined
}

/** Returns the messages as a text for the model that summarises, with at most `bytes` characters: the beginning and the end of it. */
function materialOf(messages: readonly Message[], bytes: number): string {
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
function callList(messages: readonly Message[], bytes: number): string {
  const ok = new Map(messages.flatMap((message) => (message.role === 'tool' ? [[message.callId, !message.isError] as const] : [])))
  const earlier = messages.flatMap((message) => (message.role === 'user' ? [message.content] : []))
  const calls = [...callsIn(messages).values()].map(
    ({ id, name, input }) => `- ${name} ${shortInput(input)}: ${ok.get(id) ? 'done' : 'failed'}`,
  )
  const all = [...earlier, ...calls].join('\n')
  return (all.length <= bytes ? all : `[… ${calls.length} calls in all …]\n${all.slice(-bytes)}`).toWellFormed()
}

type Asking = {
  readonly question: Omit<Question, 'request' | 'onFailure'>
  readonly request: Omit<Question['request'], 'messages'>
  readonly messages: RunMessages
  readonly window?: ModelWindow
  /** Records a trim; resolves when it is on disk and `messages` has it: with undefined, or with what rejected it. */
  readonly record: (trim: Extract<ExternalEvent, { type: 'context.trimmed' }>) => Promise<string | undefined>
}

type Reply = Awaited<ReturnType<typeof think>>

/** How often a request that was refused for its length is repeated. */
const mostRepeats = 2

/** Estimates are rather too high, so a request that is a little above the window is sent. */
const surelyTooLong = 1.25

/** Asks for the next reply: makes the request fit before, and repeats it smaller when it is refused for its length. Never rejects. */
export async function askModel({ question, request, messages, window, record }: Asking): Promise<Reply> {
  const ask = (onFailure?: (failure: ProviderFailure) => void) =>
    think({ ...question, request: { ...request, messages: messages.all() }, ...(onFailure ? { onFailure } : {}) })
  if (!window) return ask()
  await window.ready(question.signal)
  let refused: { readonly reply: Extract<Reply, { type: 'model.fail' }>; readonly note: string | undefined } | undefined
  for (let repeats = 0; ; repeats += 1) {
    const trim = repeats > mostRepeats ? undefined : await messages.makeRoom(question.signal, refused)
    if (trim && (await record(trim)) !== undefined) return unasked
    const [used, tokens] = [messages.size(), window.tokens()]
    if (refused && !trim) return tooLong(refused.reply, { used, tokens, note: refused.note })
    if (used > tokens * surelyTooLong) return tooLong(unsent(used), { used, tokens, note: undefined })
    const failures: ProviderFailure[] = []
    const reply = await ask((failure) => void failures.push(failure))
    if (reply.type === 'model.done') {
      window.replied(used, { usage: reply.usage, model: reply.model, provider: reply.provider ?? '' })
      return { ...reply, context: { window: window.tokens(), used } }
    }
    if (reply.code !== 'context_length' || question.signal.aborted) return reply
    refused = { reply, note: window.refused(used, failures[0]?.detail ?? {}) }
  }
}

/** Some servers cut the beginning of a long request without a word, so it is not sent. */
function unsent(used: number): Extract<Reply, { type: 'model.fail' }> {
  return { type: 'model.fail', code: 'context_length', message: `the request has about ${used} tokens and was not sent`, unbilled: true }
}

type Sizes = { readonly used: number; readonly tokens: number; readonly note: string | undefined }

function tooLong(reply: Extract<Reply, { type: 'model.fail' }>, { used, tokens, note }: Sizes): Reply {
  const sizes = used > tokens ? `, and the model's window has ${tokens}` : ''
  const what = `nothing more of it can be left out${sizes}: send a shorter message, put long text into a file, or use a model with a larger window`
  return { ...reply, message: [reply.message, what, ...(note ? [note] : [])].join('; ') }
}
