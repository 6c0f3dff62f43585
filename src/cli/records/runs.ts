/** A run by its id, the beginning of it, or "last". */

import type { Memory } from '../../memory/db.ts'
import type { RunRecord } from '../../memory/journal.ts'
import { CliExit, exitCodes } from '../exit.ts'

/** @throws CliExit 1 when there is none, or several begin so. */
export function resolveRun({ journal }: Pick<Memory, 'journal'>, wanted: string): RunRecord {
  const known = wanted === 'last' ? journal.runs({ limit: 1 })[0] : journal.run(wanted)
  if (known) return known
  if (wanted === 'last') throw new CliExit(exitCodes.error, 'error: there is no run yet')
  const begun = journal.runs({ limit: everyRun }).filter(({ runId }) => wanted !== '' && runId.startsWith(wanted))
  if (begun.length === 1 && begun[0]) return begun[0]
  const several = begun.length > 1 ? `${begun.length} runs begin with "${wanted}"` : `no run "${wanted}"`
  throw new CliExit(exitCodes.error, `error: ${several}; see: braidclaw run list`)
}

/** More than any home has. */
export const everyRun = 1_000_000_000
