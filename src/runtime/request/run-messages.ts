/** Holds the messages of one run, and makes each request fit into the window of its model. */

import { pictureTokens, tokensOf } from '../../kit/content/tokens.ts'
import type { RunEvent, Trim } from '../event.ts'
import type { ChatRequest, Message, ModelWindow, Redact, SummariseTurn } from '../port.ts'
import { callList, materialOf, planTrim, type TrimPlan, total } from './plan-trim.ts'
import { whenAborted } from './think.ts'
import { afterTrim, messagesDigest, messagesOf, shorten } from './turn-messages.ts'

export type RunMessagesOptions = {
  readonly runId: string
  /** Messages of earlier turns; the last `openMessages` of them belong to the turn that continues. */
  readonly history: readonly Message[]
  readonly openMessages: number
  readonly request: Omit<ChatRequest, 'messages'>
  /** Absent: no request is trimmed. */
  readonly window?: ModelWindow
  /** Absent: the middle of a turn becomes a list of its calls. */
  readonly summarise?: SummariseTurn
  readonly redact: Redact
}

export type RunMessages = ReturnType<typeof createRunMessages>

/** A request beyond this share of the window is trimmed, to the second share in one step: each trim costs the provider's cache. */
const fullShare = 0.7
const goalShare = 0.4
/** The messages get at least this share of the window, however long the system prompt and the tools are. */
const leastShare = 0.1
/** A message has this many tokens besides its text. */
const frameTokens = 8
/** An emoji has three tokens and two characters. */
const mostTokensACharacter = 1.5
/** The text for a summary has at most this many characters for each token of the window. */
const materialCharacters = 1.5

export function createRunMessages({ runId, history, openMessages, request, window, summarise, redact }: RunMessagesOptions) {
  let earlier = history.slice(0, history.length - openMessages)
  let turn = history.slice(history.length - openMessages)
  /** Messages of a person to a turn that continues or runs: the results of its calls come first, because they belong to a reply. */
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
  const fixed = () => [request.systemPrompt, JSON.stringify(request.tools)]

  function fixedSize(): number {
    state.fixed ??= total(fixed(), tokensOf)
    return state.fixed
  }

  /** Returns a number of tokens that the next request does not exceed, without reading its text: a cold process reads slowly. */
  function bound(): number {
    const characters = total(fixed(), ({ length }) => length) + total(earlier, lengthOf) + total(turn, lengthOf)
    return Math.ceil(characters * mostTokensACharacter * (window?.scale() ?? 1))
  }

  function lengthOf(message: Message): number {
    return textOf(message).length + frameTokens + picturesOf(message) * pictureTokens
  }

  const size = () => fixedSize() + total(earlier, sizeOf) + total(turn, sizeOf)

  /**
   * Returns the event that shortens the next request to fit; undefined when it fits, or nothing can be shortened.
   * @param refused the model refused the request for its length; the text, if any, is for the person
   */
  async function trimToFit(signal: AbortSignal, refused?: { readonly note?: string | undefined }) {
    if (window === undefined) return undefined
    const [tokens, factor] = [window.tokens(), window.scale()]
    const room = tokens / factor
    if (!refused && bound() <= tokens * fullShare) return undefined
    const before = size()
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
    const summary = middle && (await summaryOf(middle, { characters, sizeOf, redact, signal, summarise }))
    const change = { lines: plan.lines, readable, ...(summary ? { summary: summary.summary } : {}) }
    const after = shorten(turn, change, runId)
    const rest = earlier.slice(plan.omitted)
    return {
      type: 'context.trimmed' as const,
      ...change,
      window: tokens,
      before: Math.ceil(before * factor),
      after: Math.ceil((fixedSize() + total(rest, sizeOf) + total(after, sizeOf)) * factor),
      omitted: plan.omitted,
      ...(refused ? { refused: true as const } : {}),
      ...(refused?.note ? { note: refused.note } : {}),
      ...(summary?.usage ? { usage: summary.usage } : {}),
      digest: messagesDigest(after),
    }
  }

  return {
    /** Adds what the event says, or shortens the messages as it says. */
    take(event: RunEvent): void {
      if (event.type === 'run.start' && event.continues && event.prompt !== '') note = [{ role: 'user', content: event.prompt }]
      if (event.type === 'steer') note.push({ role: 'user', content: event.text })
      if (event.type === 'think') turn.push(...note.splice(0))
      if (event.type !== 'context.trimmed') return void turn.push(...messagesOf(event))
      turn = shorten(turn, event, runId)
      if (event.omitted > 0) earlier = [omittedNote(event), ...afterTrim(earlier.slice(event.omitted))]
    },
    all: () => [...earlier, ...turn],
    /** Returns the estimated tokens of the next request; 0 without a window. */
    size: () => (window === undefined ? 0 : Math.ceil(size() * window.scale())),
    bound,
    trimToFit,
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
  const answer = await Promise.race([summarise?.(asked, signal), whenAborted(signal)])
  const text = redact(answer?.text.trim() ?? '')
  const size = tokensOf(text)
  const isUsable = text !== '' && size < total(messages, sizeOf) && size <= tokens * 2
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
  return message.role === 'assistant' ? 0 : (message.pictures?.length ?? 0)
}
