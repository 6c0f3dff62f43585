/** The receipts of this home, held against their checkpoint and, when asked, against the journal. */

import type { Seal } from '../../memory/journal/run-end.ts'
import type { Memory } from '../../memory/memory.ts'
import { deepVerify } from '../../receipts/deep.ts'
import type { Anchor } from '../../receipts/form/anchor.ts'
import { readKey } from '../../receipts/key.ts'
import { type Verification, verifyReceipts } from '../../receipts/verify-chain.ts'
import type { Setup } from '../api.ts'
import { alteration } from './altered-entry.ts'
import { receiptPaths, sealsOf } from './recovery.ts'
import { everyRun } from './run-lookup.ts'

export type ChainCheck = {
  readonly found: Verification
  /** Journal entries that are not what was written, then attempts that receipts and journal tell differently. */
  readonly joined: readonly { readonly message: string }[]
  /** Calls that a crash left without a result, in words. */
  readonly unfinished: readonly string[]
}

export type ChainWish = {
  readonly setup: Pick<Setup, 'config' | 'paths'>
  readonly memory: Memory
  readonly anchor?: Anchor
  /** Join the journal: all of it, or these runs. */
  readonly deep: boolean | readonly string[]
}

/**
 * Log, head file and database are read one after the other, and another process may write in between. Only what is still wrong while
 * nobody can write is wrong; a log without a blemish is not worth making others wait.
 */
export function checkChain(wish: ChainWish): ChainCheck {
  const first = look(wish)
  const { found, joined, unfinished } = first
  const spotless = found.ok && found.warnings.length === 0 && joined.length === 0 && unfinished.length === 0
  return spotless ? first : wish.memory.transaction(() => look(wish))
}

function look({ setup, memory, anchor, deep }: ChainWish): ChainCheck {
  const { log, head, key } = receiptPaths(setup)
  const found = verifyReceipts({ path: log, headPath: head, key: readKey(key), checkpoint: memory.checkpoint.get(), against: anchor })
  if (deep === false || !found.ok) return { found, joined: [], unfinished: [] }
  const { problems, unfinished } = deepVerify(log, attemptsOf(memory, deep))
  return { found, joined: [...alteredRuns(memory, deep, sealsOf(setup)), ...problems], unfinished }
}

function alteredRuns(memory: Memory, deep: true | readonly string[], seal: Seal | undefined): { message: string }[] {
  const runs = deep === true ? memory.journal.runs({ limit: everyRun }).map(({ runId }) => runId) : deep
  return runs.flatMap((runId) => {
    const altered = alteration(memory, runId, seal)
    return altered ? [{ message: `run ${runId}: ${altered.message} (journal entry ${altered.seq})` }] : []
  })
}

function* attemptsOf(memory: Memory, deep: true | readonly string[]) {
  if (deep === true) yield* memory.attempts()
  else for (const runId of deep) yield* memory.attempts(runId)
}
