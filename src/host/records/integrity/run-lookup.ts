/** Finds a run by its id, a unique prefix of it, or "last". */

import type { RunRecord } from '../../../memory/journal/journal.ts'
import type { Memory } from '../../../memory/memory.ts'
import { FailureError } from '../../failure.ts'

/** @throws FailureError `error` when no run matches, or several do. */
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
