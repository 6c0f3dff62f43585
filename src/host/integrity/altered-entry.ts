/** The first journal entry of a run that is not what was written, or an end that is not, as a place where a replay parts from it. */

import type { Seal } from '../../memory/journal/run-end.ts'
import type { Memory } from '../../memory/memory.ts'
import type { Divergence, Replay } from '../../runtime/replay/replay.ts'

/** @returns undefined when every entry is as it was written, as far as the running digest tells, and the seal of the end */
export function alteration({ journal }: Pick<Memory, 'journal'>, runId: string, seal: Seal | undefined): Divergence | undefined {
  const found = journal.alteredIn(runId, seal)
  if (found === undefined) return undefined
  return { ...found, journalled: 'other contents than were written', replayed: 'nothing' }
}

/** A replay sees what cannot have been, the digest whatever was changed: the earlier of the two is the first. */
export function withAlteration(replay: Replay, altered: Divergence | undefined): Replay {
  const { divergence } = replay
  if (altered === undefined || (divergence !== undefined && divergence.event < altered.event)) return replay
  return { ...replay, divergence: altered }
}
