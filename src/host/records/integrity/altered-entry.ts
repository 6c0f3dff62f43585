/** Finds the first altered journal entry of a run, or an altered end, and reports it as the place where a replay diverges. */

import type { Seal } from '../../../memory/journal/run-end.ts'
import type { Memory } from '../../../memory/memory.ts'
import type { Divergence, Replay } from '../../../runtime/replay/replay.ts'

/** @returns undefined when the running digest and the seal of the end match every entry as it was written */
export function alteration({ journal }: Pick<Memory, 'journal'>, runId: string, seal: Seal | undefined): Divergence | undefined {
  const found = journal.alteredIn(runId, seal)
  if (found === undefined) return undefined
  return { ...found, journalled: 'other contents than were written', replayed: 'nothing' }
}

/** A replay detects impossible entries, the digest detects any change: the earlier finding is reported. */
export function withAlteration(replay: Replay, altered: Divergence | undefined): Replay {
  const { divergence } = replay
  if (altered === undefined || (divergence !== undefined && divergence.event < altered.event)) return replay
  return { ...replay, divergence: altered }
}
