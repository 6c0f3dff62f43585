/** Declares what the functions over the records of a home share. */

import type { RunRecord } from '../../memory/journal/journal.ts'
import type { Memory } from '../../memory/memory.ts'
import type { RecordWriter } from '../../memory/record-writer.ts'
import type { Conversation, Setup } from '../api.ts'
import { FailureError } from '../failure.ts'

/** What a host adds whose turns may wait in this process. */
type LiveTurns = {
  /** Returns the conversation of this host that waits for an answer to this question. */
  asking(id: string): Conversation | undefined
  /** Call it when something was written: who waits in this process, and who follows the events, learns of it at once. */
  written(): void
}

export type RecordsBase = {
  readonly setup: Setup
  readonly memory: Memory
  readonly record: RecordWriter
  /** Absent for a command, which has no turns of its own. */
  readonly live?: LiveTurns
}

/** The limits of every list: what is asked for, but no more than `most`. */
export function limited(asked: number | undefined, usual: number, most = 500): number {
  return Math.max(1, Math.min(most, Math.trunc(asked ?? usual)))
}

/** Finds a run by its id, a unique prefix of it, or "last". @throws FailureError `error` when no run matches, or several do. */
export function resolveRun({ journal }: Pick<Memory, 'journal'>, wanted: string): RunRecord {
  const known = wanted === 'last' ? journal.runs({ limit: 1 })[0] : journal.run(wanted)
  if (known) return known
  if (wanted === 'last') throw new FailureError('error', 'there is no run yet')
  const begun = journal.runs({ limit: everyRun }).filter(({ runId }) => wanted !== '' && runId.startsWith(wanted))
  if (begun.length === 1 && begun[0]) return begun[0]
  const several = begun.length > 1 ? `${begun.length} runs begin with "${wanted}"` : `no run "${wanted}"`
  throw new FailureError('error', `${several}; see: braidclaw run list`)
}

/** More runs than any home has. */
export const everyRun = 1_000_000_000
