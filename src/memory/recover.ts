/** After a crash: acts of dead processes that have no result get one, and their runs get an end. */

import type { ExternalEvent, ToolOutcome } from '../runtime/event.ts'
import type { Clock, Log, RunIdentity } from '../runtime/port.ts'
import type { Journal } from './journal.ts'
import { isAlive } from './owner.ts'

type ToolDone = Extract<ExternalEvent, { type: 'tool.done' }>

/** What a start found and put right. */
export type Recovery = {
  readonly interrupted: readonly { readonly runId: string; readonly callId: string; readonly tool: string; readonly receipt?: string }[]
  /** Runs that a dead process left open, now closed with code `error`. */
  readonly closedRuns: readonly string[]
  /** Receipts that a crash left beyond the checkpoint. */
  readonly adopted: number
  readonly tornBytes: number
}

type RecoverOptions = {
  readonly journal: Journal
  readonly log: Log
  readonly now: Clock
  /** Writes the receipt of a result, and journals both unless the run is `forgotten`. */
  readonly toolDone: (run: RunIdentity, event: ToolDone, forgotten: boolean) => ToolDone
  /** Brings the receipts log and the checkpoint together. */
  readonly settle: () => Pick<Recovery, 'adopted' | 'tornBytes'>
}

const outcome: ToolOutcome = { status: 'failed', output: '', error: 'interrupted: outcome unknown' }
const message = 'the process ended before the run did'

/** What a dead process left unfinished. */
export function deadRuns(journal: Journal): ReturnType<Journal['unfinished']> {
  return journal.unfinished().filter(({ owner }) => !isAlive(owner))
}

/** Work is never run again from here: whether it happened is unknown. */
export function recoverRuns({ journal, log, now, toolDone, settle }: RecoverOptions): Recovery {
  const { adopted, tornBytes } = settle()
  const dead = deadRuns(journal)
  // What was said was cleared; a journal begun anew in its middle would look altered.
  const forgotten = new Set(dead.flatMap(({ runId }) => (journal.tells(runId) ? [] : [runId])))
  const interrupted = dead.flatMap((run) =>
    run.intents.map(({ callId, tool }) => {
      const { receipt } = toolDone(run, { type: 'tool.done', id: callId, outcome }, forgotten.has(run.runId)).outcome
      log('warn', 'interrupted tool call', { run: run.runId, call: callId, tool })
      return { runId: run.runId, callId, tool, ...(receipt ? { receipt } : {}) }
    }),
  )
  for (const runId of forgotten) journal.forget(runId)
  const open = dead.filter(({ ended, runId }) => ended === null && !forgotten.has(runId))
  for (const run of open) {
    journal.append({ run, kind: 'note', type: 'interrupted', at: now(), body: { message } })
    journal.end(run.runId, { at: now(), code: 'error', message, digest: null })
  }
  return { interrupted, closedRuns: open.map(({ runId }) => runId), adopted, tornBytes }
}
