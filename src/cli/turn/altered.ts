/** The first journal entry of a run that is not what was written, in words, and as a place where a replay parts from it. */

import type { Memory } from '../../memory/db.ts'
import type { Divergence, Replay } from '../../runtime/replay.ts'

/** @returns undefined when every entry is as it was written, as far as the journal's running digest tells */
export function alteration({ journal }: Pick<Memory, 'journal'>, runId: string): Divergence | undefined {
  const found = journal.alteredIn(runId)
  if (found === undefined) return undefined
  const message = `event ${found.event} is not what was written, or what stood before it is gone`
  return { ...found, message, journalled: 'other contents than were written', replayed: 'nothing' }
}

/** A replay sees what cannot have been, the digest whatever was changed: the earlier of the two is the first. */
export function withAlteration(replay: Replay, altered: Divergence | undefined): Replay {
  const { divergence } = replay
  if (altered === undefined || (divergence !== undefined && divergence.event < altered.event)) return replay
  return { ...replay, divergence: altered }
}
