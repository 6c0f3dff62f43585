/** One compaction: what is due goes to a model, its answer is judged, and replaces what was summarised; or nothing changes. */

import type { Usage } from '../../runtime/event.ts'
import type { Clock, Log } from '../../runtime/port.ts'
import { diskTrouble } from '../agent-files/disk.ts'
import { type SummaryRequest, summaryRequest } from './summary-words.ts'

/** `cut`: the answer ended at the token limit, so its end is missing. */
export type Summarised =
  | { readonly ok: true; readonly text: string; readonly model: string; readonly usage?: Usage; readonly cut?: boolean }
  | { readonly ok: false; readonly message: string }

/** A model that summarises. Failures are values; what it throws counts as one. */
export type Summarise = (request: SummaryRequest, signal: AbortSignal) => Promise<Summarised>

/** What one compaction takes: whole pairs, oldest first, and the summary so far. */
export type Portion = { readonly existing: string; readonly conversation: string; readonly messages: number }

/** Attempts that failed in a row; `at` is the last one, in milliseconds since 1970. */
export type Failures = { readonly count: number; readonly at: number; readonly message: string }

/** `at` in milliseconds since 1970. */
export type Answer = { readonly text: string; readonly model: string; readonly at: number }

/** Where a conversation and its summary are kept. Any of it may throw for trouble with the disk. */
export type CompactionStore<P extends Portion> = {
  /** Undefined while the conversation is short enough. */
  due(): P | undefined
  /** Kept on disk, so that every process holds back. */
  failures(): Failures | undefined
  failed(failures: Failures): void
  /** All or nothing. False: what was summarised, or the summary before, is not what it was; nothing is done then. Forgets failures. */
  commit(portion: P, answer: Answer): boolean
}

/** What came of it. `waiting`: after failures, not before `until`. `busy`: another is at it. `changed`: what was read was altered meanwhile. */
export type Compaction =
  | { readonly state: 'idle' | 'busy' | 'changed' | 'cancelled' }
  | { readonly state: 'waiting'; readonly until: number; readonly message: string }
  | { readonly state: 'failed'; readonly message: string }
  | { readonly state: 'done'; readonly messages: number; readonly model: string; readonly usage?: Usage }

export type CompactionPorts = { readonly summarise: Summarise; readonly now: Clock; readonly log: Log; readonly signal: AbortSignal }

/** 2,048 tokens are never longer; a model that writes more did not summarise. */
const longest = 32_768

const firstPause = 60_000
const longestPause = 3_600_000

export async function compact<P extends Portion>(store: CompactionStore<P>, ports: CompactionPorts): Promise<Compaction> {
  // Asked first: while it waits, a conversation that grows must not be gone through after every message.
  const failures = store.failures()
  const until = failures ? failures.at + pause(failures.count) : 0
  // A clock that was set back must not hold it up for ever.
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

async function ask(portion: Portion, { summarise, signal }: CompactionPorts): Promise<Summarised> {
  try {
    return judged(await summarise(summaryRequest(portion), signal))
  } catch (error) {
    return { ok: false, message: error instanceof Error ? error.message : String(error) }
  }
}

function judged(answer: Summarised): Summarised {
  if (!answer.ok) return answer
  const text = answer.text.toWellFormed().trim()
  const bytes = Buffer.byteLength(text)
  if (bytes === 0) return { ok: false, message: `the summary of ${answer.model} is empty` }
  if (bytes > longest) return { ok: false, message: `the summary of ${answer.model} has ${bytes} bytes; more than ${longest} is none` }
  return { ...answer, text }
}

type Noting = { readonly failed: (failures: Failures) => void }

function note({ failed }: Noting, { log }: CompactionPorts, failures: Failures): Compaction {
  const { count, message } = failures
  failed(failures)
  log('warn', 'compaction failed', { message, failures: count, nextTryInMs: pause(count) })
  return { state: 'failed', message }
}

type Found<P extends Portion> = {
  readonly portion: P
  readonly answer: Extract<Summarised, { ok: true }>
  /** Of failures, should this be one. */
  readonly count: number
}

function keep<P extends Portion>(store: CompactionStore<P>, ports: CompactionPorts, { portion, answer, count }: Found<P>): Compaction {
  const { text, model, usage, cut } = answer
  const { log, now } = ports
  try {
    if (!store.commit(portion, { text, model, at: now() })) return dropped(log)
  } catch (error) {
    const message = diskTrouble(error)
    if (message === undefined) throw error
    return note(store, ports, { count, at: now(), message })
  }
  if (cut) log('warn', 'summary cut short', { model, why: 'it reached its token limit' })
  log('info', 'conversation compacted', { messages: portion.messages, model })
  return { state: 'done', messages: portion.messages, model, ...(usage ? { usage } : {}) }
}

function dropped(log: Log): Compaction {
  log('info', 'compaction dropped', { why: 'the conversation or its summary was changed meanwhile' })
  return { state: 'changed' }
}
