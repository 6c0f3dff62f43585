/** Declares what the functions over the records of a home share. */

import type { RunRecord } from '../../memory/journal/journal.ts'
import type { Memory } from '../../memory/memory.ts'
import type { RecordWriter } from '../../memory/record-writer.ts'
import type { Conversation, Setup } from '../api.ts'
import { FailureError } from '../failure.ts'

/** The turns of a host, which may wait in this process. */
type LiveTurns = {
  /** Returns the conversation of this host that waits for an answer to this question. */
  asking(id: string): Conversation | undefined
  /** Call it when something was written: it wakes what waits in this process, and what follows the events. */
  written(): void
}

export type RecordsBase = {
  readonly setup: Setup
  readonly memory: Memory
  readonly record: RecordWriter
  /** Absent for a command, which has no turns of its own. */
  readonly live?: LiveTurns
}

/** Returns the length of a list: as requested, but no more than `most`. */
export function limited(asked: number | undefined, usual: number, most = 500): number {
  return Math.max(1, Math.min(most, Math.trunc(asked ?? usual)))
}

/** Finds a run by its id, a unique prefix of it, or "last". @throws FailureError `error` when no run matches, or several do. */
export function resolveRun({ journal }: Pick<Memory, 'journal'>, ref: string): RunRecord {
  const known = ref === 'last' ? journal.runs({ limit: 1 })[0] : journal.run(ref)
  if (known) return known
  if (ref === 'last') throw new FailureError('error', 'no run exists yet')
  const begun = journal.runs({ limit: everyRun }).filter(({ runId }) => ref !== '' && runId.startsWith(ref))
  if (begun.length === 1 && begun[0]) return begun[0]
  const several = begun.length > 1 ? `${begun.length} runs begin with "${ref}"` : `no run "${ref}"`
  throw new FailureError('error', `${several}; see: braidclaw run list`)
}

/** More runs than any home has. */
export const everyRun = 1_000_000_000
