/** Runs one compaction: sends the due messages to a model, checks its answer, and replaces them by it, or changes nothing. */

import { errorText } from '../../kit/errors.ts'
import type { Usage } from '../../runtime/event.ts'
import { type ChatResponse, type Clock, type Log, type Provider, ProviderFailure } from '../../runtime/port.ts'
import { diskErrorMessage } from '../agent-files/disk.ts'
import { type SummaryRequest, summaryRequest } from './summary-words.ts'

/** `cut`: the answer ended at the token limit, so its end is missing. */
type SummaryResult =
  | { readonly ok: true; readonly text: string; readonly model: string; readonly usage?: Usage; readonly cut?: boolean }
  | { readonly ok: false; readonly message: string }

/** Calls a model that summarises. Failures are values; an exception counts as a failure too. */
export type Summarise = (request: SummaryRequest, signal: AbortSignal) => Promise<SummaryResult>

/** The input of one compaction: complete pairs, oldest first, and the summary so far. */
export type Portion = {
  readonly existing: string
  readonly conversation: string
  readonly messages: number
  /** Says what the summary holds in any case. */
  readonly keep?: string | undefined
}

/** Failed attempts in a row; `at` is the last one, in milliseconds since 1970. */
export type Failures = { readonly count: number; readonly at: number; readonly message: string }

/** `at` in milliseconds since 1970. */
export type SummaryAnswer = { readonly text: string; readonly model: string; readonly at: number }

/** Stores a conversation and its summary. Every method may throw because of disk errors. */
export type CompactionStore<P extends Portion> = {
  /** Returns undefined while the conversation is short enough. */
  due(): P | undefined
  /** Reads the failures from disk, so that every process waits after them. */
  failures(): Failures | undefined
  failed(failures: Failures): void
  /**
   * Stores everything or nothing. Returns false, without any change, when the source or the previous summary has changed. Clears the
   * failures.
   */
  commit(portion: P, answer: SummaryAnswer): boolean
}

/**
 * The result. `waiting`: after failures, no attempt before `until`. `busy`: another process compacts. `changed`: the source changed
 * meanwhile.
 */
export type Compaction =
  | { readonly state: 'idle' | 'busy' | 'changed' | 'cancelled' }
  | { readonly state: 'waiting'; readonly until: number; readonly message: string }
  | { readonly state: 'failed'; readonly message: string }
  | { readonly state: 'done'; readonly messages: number; readonly model: string; readonly usage?: Usage }

type CompactionPorts = { readonly summarise: Summarise; readonly now: Clock; readonly log: Log; readonly signal: AbortSignal }

/** In bytes. 2,048 tokens are never longer; a model that writes more did not summarise. */
const longest = 32_768

const firstPause = 60_000
const longestPause = 3_600_000

export async function compact<P extends Portion>(store: CompactionStore<P>, ports: CompactionPorts): Promise<Compaction> {
  // Checked first, so that a growing conversation is not read after every message during the pause.
  const failures = store.failures()
  const until = failures ? failures.at + pause(failures.count) : 0
  // If the clock was set back, do not wait: the pause might never end.
  if (failures && ports.now() < until && ports.now() >= failures.at) return { state: 'waiting', until, message: failures.message }
  const portion = store.due()
  if (!portion) return { state: 'idle' }
  const answer = await ask(portion, ports)
  if (ports.signal.aborted) return { state: 'cancelled' }
  const count = (failures?.count ?? 0) + 1
  return answer.ok
    ? keep(store, ports, { portion, answer, count })
    : note(store, ports, { count, at: ports.now(), message: answer.message })
}

function pause(count: number): number {
  return Math.min(longestPause, firstPause * 2 ** (count - 1))
}

async function ask(portion: Portion, { summarise, signal }: CompactionPorts): Promise<SummaryResult> {
  try {
    return judged(await summarise(summaryRequest(portion), signal))
  } catch (error) {
    return { ok: false, message: errorText(error) }
  }
}

function judged(answer: SummaryResult): SummaryResult {
  if (!answer.ok) return answer
  const text = answer.text.toWellFormed().trim()
  const bytes = Buffer.byteLength(text)
  if (bytes === 0) return { ok: false, message: `the summary of ${answer.model} is empty` }
  if (bytes > longest) return { ok: false, message: `the summary of ${answer.model} has ${bytes} bytes; more than ${longest} is none` }
  return { ...answer, text }
}

function note({ failed }: { readonly failed: (failures: Failures) => void }, { log }: CompactionPorts, failures: Failures): Compaction {
  const { count, message } = failures
  failed(failures)
  log('warn', 'compaction failed', { message, failures: count, nextTryInMs: pause(count) })
  return { state: 'failed', message }
}

type CompactionAttempt<P extends Portion> = {
  readonly portion: P
  readonly answer: Extract<SummaryResult, { ok: true }>
  /** The number of failures in a row if this attempt fails too. */
  readonly count: number
}

function keep<P extends Portion>(
  store: CompactionStore<P>,
  ports: CompactionPorts,
  { portion, answer, count }: CompactionAttempt<P>,
): Compaction {
  const { text, model, usage, cut } = answer
  const { log, now } = ports
  try {
    if (!store.commit(portion, { text, model, at: now() })) return dropped(log)
  } catch (error) {
    const message = diskErrorMessage(error)
    if (message === undefined) throw error
    return note(store, ports, { count, at: now(), message })
  }
  if (cut) log('warn', 'summary cut short', { model, why: 'it reached its token limit' })
  log('info', 'conversation compacted', { messages: portion.messages, model })
  return { state: 'done', messages: portion.messages, model, usage }
}

function dropped(log: Log): Compaction {
  log('info', 'compaction dropped', { why: 'the conversation or its summary was changed meanwhile' })
  return { state: 'changed' }
}

/** Uses a provider as the model that summarises: sends the hint `cheap` for a router, and no tools. */
export function summariserOf({ provider, model }: { readonly provider: Provider; readonly model: string }): Summarise {
  return async (request, signal) => {
    try {
      return summaryIn(await answerOf(provider, { model, request }, signal))
    } catch (error) {
      if (error instanceof ProviderFailure) return { ok: false, message: error.message }
      throw error
    }
  }
}

async function answerOf(
  provider: Provider,
  { model, request }: { readonly model: string; readonly request: SummaryRequest },
  signal: AbortSignal,
): Promise<ChatResponse | undefined> {
  const messages = [{ role: 'user', content: request.text }] as const
  const metadata = { hint: 'cheap' }
  for await (const chunk of provider.chat(
    { systemPrompt: request.system, messages, tools: [], model, maxOutputTokens: request.maxTokens, metadata },
    signal,
  )) {
    if (chunk.type === 'done') return chunk.response
  }
  return undefined
}

function summaryIn(response: ChatResponse | undefined): SummaryResult {
  if (!response) return { ok: false, message: 'the stream of the model that summarises ended without an end' }
  const text = response.parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('')
  return { ok: true, text, model: response.model, usage: response.usage, ...(response.stop === 'length' ? { cut: true } : {}) }
}
