/**
 * Runs the program of a run step by step: an external event and all its consequences, until nothing more is enabled. Live and in replay.
 */

import type { States } from '../kernel/check-program.ts'
import { AdmissionError, createEngine, LivelockError } from '../kernel/engine.ts'
import type { Rejection } from '../kernel/select.ts'
import type { AnyThread } from '../kernel/thread.ts'
import { isObject } from '../kit/json.ts'
import type { AgentEvent, ExternalEvent, RunEvent } from './event.ts'
import type { Clock, RecordEntry } from './port.ts'
import { digestLines, type Projected, project, projection } from './project.ts'
import { standIn, ThreadFailure, USER } from './threads/thread-failure.ts'
import { blockersOf, eventName } from './vocabulary.ts'

type ProgramOptions = {
  readonly threads: readonly AnyThread<RunEvent>[]
  /** Finds the thread that a `thread.add` names. */
  readonly threadOf?: (name: string) => AnyThread<RunEvent> | undefined
  readonly onExternal?: (event: RunEvent) => void
}

/** `blockers` names the threads that block a stalled run. */
type OnSelect = (event: RunEvent, blockers: string) => void

/** These events report facts or stop the run; a developer's thread that blocks one cannot undo it, so the thread counts as failed. */
const mustBeTaken: readonly RunEvent['type'][] = [
  'run.start',
  'model.done',
  'model.fail',
  'context.trimmed',
  'tool.done',
  'tool.changed',
  'judged',
  'check.done',
  'clock',
  'cancel',
  'estop',
]

/** Runs a program that includes developers' threads: a thread that fails or blocks the run forever ends it. */
export function createProgram({ threads, threadOf = () => undefined, onExternal }: ProgramOptions) {
  const engine = createEngine<RunEvent>({ threads, onExternal })
  /** The developers' threads that take part and have not failed. */
  const trusted = new Set(threads.map(({ name }) => name).filter((name) => name.startsWith(USER)))

  /** Processes one external event and all its consequences. @returns the thread that rejected it. @throws what our own threads throw */
  function take(event: ExternalEvent, onSelect: OnSelect): string | undefined {
    const select = (event: RunEvent) => {
      if (event.type === 'thread.add') join(event.name)
      onSelect(event, event.type === 'stalled' ? blockersOf(engine.explain()) : '')
    }
    engine.send(event)
    for (;;) {
      const { failed, by } = attempt(() => engine.superstep(select).rejected[0]?.by)
      if (failed || releaseStuck()) continue
      if (by === undefined || !trusted.has(by) || !isOwed(event)) return by
      replace(new ThreadFailure(by, `blocks ${eventName(event)}, which has happened`), event)
      engine.send(event)
    }
  }

  /** `failed`: a developer's thread failed and a stand-in replaced it. */
  function attempt(step: () => string | undefined): { readonly failed: boolean; readonly by?: string | undefined } {
    try {
      return { failed: false, by: step() }
    } catch (error) {
      const failures = failuresIn(error).filter(({ failure }) => trusted.has(failure.thread))
      if (failures.length === 0) throw error
      for (const { failure, at } of failures) replace(failure, at)
      return { failed: true }
    }
  }

  function join(name: string): void {
    const thread = threadOf(name)
    if (thread === undefined) return
    trusted.add(name)
    engine.put(thread)
  }

  /** `at` is the external event that was being processed. The journal has it before all consequences of the failure. */
  function replace(failure: ThreadFailure, at?: RunEvent): void {
    if (trusted.delete(failure.thread)) engine.put(standIn(failure, at))
  }

  /** Replaces the threads whose blocks would last forever: nothing is in progress and no question is open. */
  function releaseStuck(): boolean {
    if (trusted.size === 0) return false
    const held = engine.explain().flatMap(({ event, by }) => by.filter((name) => trusted.has(name)).map((name) => ({ name, event })))
    if (held.length === 0 || !isQuiet(engine.states())) return false
    for (const { name, event } of held) replace(new ThreadFailure(name, `blocks ${eventName(event)} when nothing else can happen`))
    return true
  }

  return { take }
}

function isOwed(event: ExternalEvent): boolean {
  return mustBeTaken.includes(event.type) || (event.type === 'approval.decision' && event.by === 'expiry')
}

/** Uses the watchdog's definition: the run has started, nobody owes it an answer, and it is not over. */
function isQuiet({ watchdog, finisher }: States): boolean {
  if (!isObject(watchdog) || !isObject(finisher)) return false
  const { started, thinking, inFlight, gates } = watchdog
  return (
    started === true && thinking === false && inFlight === 0 && Array.isArray(gates) && gates.length === 0 && finisher.finished === false
  )
}

function failuresIn(error: unknown): readonly { readonly failure: ThreadFailure; readonly at?: RunEvent }[] {
  if (error instanceof ThreadFailure) return [{ failure: error }]
  if (error instanceof AdmissionError) return failuresIn(error.cause).map(({ failure }) => ({ failure, at: error.event }))
  if (!(error instanceof LivelockError)) return []
  const last = error.last.map((each) => each.replace(/^user#/, 'user.')).join(', ')
  const why = `never comes to rest: more than ${error.maxSelections} events in a row with nothing from outside between them, the last ${last}`
  return error.by.map((thread) => ({ failure: new ThreadFailure(thread, why) }))
}

export type SelectedEvent = { readonly event: RunEvent; readonly shown: readonly AgentEvent[] }

type SuperStep = {
  /** In order of selection. */
  readonly selected: readonly SelectedEvent[]
  readonly batch: readonly RecordEntry[]
  readonly rejected: readonly Rejection<RunEvent>[]
}

type StepperOptions = {
  readonly runId: string
  readonly threads: readonly AnyThread<RunEvent>[]
  /** Finds the thread that a `thread.add` names. */
  readonly threadOf: (name: string) => AnyThread<RunEvent> | undefined
  readonly now: Clock
  readonly approvalTtlMs: number
}

/**
 * Computes the super-steps of a run: the selected events, what a consumer may see, and what must be on disk before any takes effect.
 * @returns a function that feeds external events to the threads; it throws LivelockError and whatever one of our own threads throws
 */
export function createStepper({ runId, threads, threadOf, now, approvalTtlMs }: StepperOptions) {
  let batch: RecordEntry[] = []
  let seen: Projected = projection(runId)
  const digest = new Bun.CryptoHasher('sha256')
  // The kernel admits only external events, and no thread creates one.
  const program = createProgram({
    threads,
    threadOf,
    onExternal: (event) => void batch.push({ kind: 'external', event: event as ExternalEvent }),
  })

  function entryOf(event: RunEvent): RecordEntry | undefined {
    if (event.type === 'act') return { kind: 'intent', act: event }
    if (event.type === 'deny') return { kind: 'denied', deny: event }
    if (event.type === 'apply') return { kind: 'apply', apply: event }
    if (event.type === 'drop') return { kind: 'dropped', drop: event }
    if (event.type === 'gate.open') return { kind: 'gate', gate: event, expires: now() + approvalTtlMs }
    if (event.type === 'retry') return { kind: 'retry', retry: event }
    if (event.type === 'finish') return { kind: 'finish', finish: event, digest: digest.digest('hex') }
  }

  return (events: readonly ExternalEvent[]): SuperStep => {
    const selected: SelectedEvent[] = []
    batch = []
    const rejected: Rejection<RunEvent>[] = []
    const onSelect = (event: RunEvent, blockers: string) => {
      seen = project(seen, event, blockers)
      for (const line of digestLines(event, seen)) digest.update(line)
      selected.push({ event, shown: seen.events })
      const entry = entryOf(event)
      if (entry) batch.push(entry)
    }
    for (const event of events) {
      const by = program.take(event, onSelect)
      if (by !== undefined) rejected.push({ event, by })
    }
    return { selected, batch, rejected }
  }
}
