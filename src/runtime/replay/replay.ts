/** Replays a run from its journal alone: the same events byte for byte (except unjournalled partial texts), or the first divergence. */

import type { AnyThread } from '../../kernel/thread.ts'
import { errorText } from '../../kit/errors.ts'
import { canonical, isObject } from '../../kit/json.ts'
import type { AgentEvent, ContextUse, RunEvent } from '../event.ts'
import type { Message } from '../port.ts'
import { program, type RunLimits } from '../program.ts'
import { contextAfter, digestLines, type Projected, project, projection } from '../project.ts'
import { messagesDigest, messagesOf, shorten } from '../request/turn-messages.ts'
import { createProgram } from '../super-step.ts'
import type { PreparedThread } from '../threads/prepare-thread.ts'
import { externalOf, type ReplayEntry } from './external-entry.ts'

export type ReplayInput = {
  readonly runId: string
  /** All entries of the run, in order. */
  readonly entries: readonly ReplayEntry[]
  readonly limits: RunLimits
  /** The rules of the run, in order. */
  readonly rules?: readonly AnyThread<RunEvent>[]
  /** The developer's threads, if the run had any; see `missingThreads`. */
  readonly joined?: readonly PreparedThread[]
}

/** `event` counts the run's entries from 1; `seq` is the entry's own number. */
export type Divergence = {
  readonly event: number
  readonly seq: number
  readonly message: string
  readonly journalled: string
  readonly replayed: string
}

export type Replay = {
  /** The events that a consumer saw, without partial texts; up to the divergence if there is one. */
  readonly events: readonly AgentEvent[]
  /** SHA-256 of those events as JSON lines, in hex; see digestLine. */
  readonly digest: string
  /** Tells whether the journal has the end of the run; a killed run has none. */
  readonly ended: boolean
  /** The use of the model's window at the end. */
  readonly context: ContextUse
  readonly divergence?: Divergence
}

/** A consequence that the driver journals, in the form that the replay compares. */
type Consequence = { readonly type: 'act' | 'deny' | 'apply' | 'drop' | 'retry' | 'finish'; readonly text: string; readonly label: string }

/** Never throws because of the journal's content. */
export function replayRun({ runId, entries, limits, rules = [], joined = [] }: ReplayInput): Replay {
  const threadOf = (name: string) => joined.find((each) => each.name === name)?.thread
  const running = createProgram({ threads: [...program(limits), ...rules], threadOf })
  const stream = createStream(runId)
  const due: Consequence[] = []
  let turn: Message[] = []
  const steered: Message[] = []
  // The messages of a turn that this run continues begin in the journal of another run.
  const isContinuation = entries.some((entry) => entry.type === 'run.start' && isObject(entry.body) && entry.body.continues !== undefined)
  const ended = entries.some(({ kind, type }) => kind === 'note' && (type === 'finish' || type === 'turn.copied'))

  function take(event: RunEvent, blockers: string): void {
    stream.take(event, blockers)
    if (event.type === 'context.trimmed') turn = shorten(turn, event, runId)
    else turn.push(...messagesOf(event))
    if (event.type === 'steer') steered.push({ role: 'user', content: event.text })
    if (event.type === 'think') turn.push(...steered.splice(0))
    const consequence = consequenceOf(event, stream.digest)
    if (consequence) due.push(consequence)
  }

  /** @returns the divergence between journal and replay, if any. */
  function follow(entry: ReplayEntry): Difference | undefined {
    if (entry.kind !== 'external') return compare(entry, due.shift())
    const [missing] = due
    if (missing) return { journalled: labelOf(entry), replayed: missing.label }
    const event = externalOf(entry)
    if (event === undefined) return { journalled: `${labelOf(entry)}, which is not what a run writes`, replayed: 'nothing' }
    const by = running.take(event, take)
    if (by !== undefined) return { journalled: labelOf(entry), replayed: `a refusal of it by ${by}` }
    if (event.type !== 'context.trimmed' || isContinuation || event.digest === messagesDigest(turn)) return undefined
    return { journalled: `${event.type} to other messages`, replayed: event.type }
  }

  for (const [at, entry] of entries.entries()) {
    if (isAside(entry)) continue
    const way = safely(() => follow(entry))
    if (way) return { ...stream.result(), ended, divergence: parting(at, entry, way) }
  }
  const [missing] = due
  const last = entries.at(-1)
  if (!missing || !last || !ended) return { ...stream.result(), ended }
  return {
    ...stream.result(),
    ended,
    divergence: parting(entries.length - 1, last, { journalled: 'nothing more', replayed: missing.label }),
  }
}

type Difference = { readonly journalled: string; readonly replayed: string }

function parting(at: number, { seq }: ReplayEntry, { journalled, replayed }: Difference): Divergence {
  return { event: at + 1, seq, journalled, replayed, message: `event ${at + 1}: the journal has ${journalled}, the replay ${replayed}` }
}

/** Recognizes notes that no run writes by itself: repairs after a crash. */
function isAside({ kind, type, body }: ReplayEntry): boolean {
  if (type === 'drop') return isObject(body) && body.result !== undefined
  return kind === 'note' && !['deny', 'retry', 'finish'].includes(type)
}

function compare(entry: ReplayEntry, expected: Consequence | undefined): Difference | undefined {
  if (expected === undefined) return { journalled: labelOf(entry), replayed: 'nothing' }
  if (textOf(entry) === expected.text) return undefined
  const [journalled, replayed] = [labelOf(entry), expected.label]
  if (journalled !== replayed) return { journalled, replayed }
  const other = entry.type === 'finish' ? 'after another event stream' : 'with other contents'
  return { journalled: `${journalled} ${other}`, replayed }
}

/** Catches errors of threads: an altered journal can put them into states that they never reach by themselves. */
function safely(step: () => Difference | undefined): Difference | undefined {
  try {
    return step()
  } catch (error) {
    return { journalled: 'what cannot be run', replayed: `fails: ${errorText(error)}` }
  }
}

function consequenceOf(event: RunEvent, digest: () => string): Consequence | undefined {
  if (event.type === 'finish')
    return { type: event.type, label: `finish (${event.ending.code})`, text: canonical({ ...event, digest: digest() }) }
  if (!isJournalled(event)) return undefined
  return { type: event.type, label: label(event), text: canonical(event) }
}

type Journalled = Extract<RunEvent, { type: 'act' } | { type: 'deny' } | { type: 'apply' } | { type: 'drop' } | { type: 'retry' }>

const isJournalled = (event: RunEvent): event is Journalled => ['act', 'deny', 'apply', 'drop', 'retry'].includes(event.type)

const label = (event: { readonly type: string; readonly id?: unknown; readonly by?: unknown }) =>
  `${event.type} ${String(event.id ?? '')}${event.by === undefined ? '' : ` by ${event.by}`}`.trim()

function labelOf({ type, body }: ReplayEntry): string {
  if (!isObject(body)) return type
  if (type === 'finish') return `finish (${isObject(body.ending) ? body.ending.code : 'no ending'})`
  return label({ ...body, type })
}

/** Ignores the receipt, which was added to a denial or a drop after the decision. */
function textOf({ body, type }: ReplayEntry): string {
  if (!isObject(body)) return 'nothing'
  const { receipt: _receipt, ...rest } = body
  return canonical(type === 'deny' || type === 'drop' ? rest : body)
}

function createStream(runId: string) {
  const hasher = new Bun.CryptoHasher('sha256')
  const events: AgentEvent[] = []
  const state: { seen: Projected; context: ContextUse } = { seen: projection(runId), context: { trimmed: 0 } }
  const digest = () => hasher.copy().digest('hex')
  return {
    take(event: RunEvent, blockers: string) {
      state.seen = project(state.seen, event, blockers)
      state.context = contextAfter(state.context, event)
      for (const line of digestLines(event, state.seen)) hasher.update(line)
      events.push(...state.seen.events)
    },
    digest,
    result: () => ({ events, digest: digest(), context: state.context }),
  }
}
