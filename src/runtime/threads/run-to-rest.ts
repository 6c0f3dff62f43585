/** Runs a program that includes developers' threads, live and in replay: a thread that fails or blocks the run forever ends it. */

import type { States } from '../../kernel/check-program.ts'
import { AdmissionError, createEngine } from '../../kernel/engine.ts'
import { LivelockError } from '../../kernel/livelock.ts'
import type { AnyThread } from '../../kernel/thread.ts'
import { isObject } from '../../kit/json.ts'
import type { ExternalEvent, RunEvent } from '../event.ts'
import { blockersOf, eventName } from '../stall-report.ts'
import { standIn, ThreadFailure, USER } from './thread-failure.ts'

export type ProgramOptions = {
  readonly threads: readonly AnyThread<RunEvent>[]
  /** Finds the thread that a `thread.add` names. */
  readonly threadOf?: (name: string) => AnyThread<RunEvent> | undefined
  readonly onExternal?: (event: RunEvent) => void
}

/** `blockers` names the threads that block a stalled run. */
export type OnSelect = (event: RunEvent, blockers: string) => void

export type Program = ReturnType<typeof createProgram>

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

export function createProgram({ threads, threadOf = () => undefined, onExternal }: ProgramOptions) {
  const engine = createEngine<RunEvent>({ threads, ...(onExternal ? { onExternal } : {}) })
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

  /** Nothing is in progress and nobody is asked, so the current blocks would last forever. */
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
