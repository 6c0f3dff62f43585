/** Checks the receipts of this home against their checkpoint and, on request, against the journal. */

import { visible } from '../../../kit/text.ts'
import type { Seal } from '../../../memory/journal/run-end.ts'
import type { Memory } from '../../../memory/memory.ts'
import type { Anchor } from '../../../receipts/form/anchor.ts'
import { collectGarbageEvery } from '../../../receipts/form/receipt-lines.ts'
import { readKey } from '../../../receipts/key.ts'
import type { Span } from '../../../receipts/left-over.ts'
import { showReceipt } from '../../../receipts/list-receipts.ts'
import { type DeepResult, deepVerify } from '../../../receipts/verify/deep.ts'
import { type Verification, type VerifyProblem, verifyReceipts } from '../../../receipts/verify/verify-chain.ts'
import type { Setup } from '../../api.ts'
import { alteration } from './altered-entry.ts'
import { receiptPaths, sealsOf } from './recovery.ts'

type Message = { readonly message: string }

export type ChainCheck = {
  readonly found: Verification
  /** Altered journal entries, attempts on which receipts and journal disagree, then receipts that belong to no run. */
  readonly joined: readonly Message[]
  /** Calls that a crash left without a result, as sentences. */
  readonly unfinished: readonly string[]
  /** Receipts of older versions that belong to no run, as sentences. */
  readonly older: readonly string[]
  /** What an operator could accept: the receipts that belong to no run, and the other problems of the journal. */
  readonly acceptable: { readonly receipts: readonly Span[]; readonly problems: readonly string[] }
}

export type ChainWish = {
  readonly setup: Pick<Setup, 'config' | 'paths'>
  readonly memory: Memory
  readonly anchor?: Anchor
  /** Also checks against the journal. */
  readonly deep: boolean
}

/**
 * The check reads log, head file and database one after the other, and another process may write in between. So it counts a problem only if
 * it remains while nobody can write; a log without problems needs no lock, which would make other processes wait.
 */
export function checkChain(request: ChainWish): ChainCheck {
  const first = look(request)
  const { found, joined, unfinished, older } = first
  const spotless = found.ok && found.warnings.length + joined.length + unfinished.length + older.length === 0
  return spotless ? first : request.memory.transaction(() => look(request))
}

function look({ setup, memory, anchor, deep }: ChainWish): ChainCheck {
  const { log, head, key } = receiptPaths(setup)
  const checkpoint = memory.checkpoint.get()
  const found = verifyReceipts({
    path: log,
    headPath: head,
    key: readKey(key),
    checkpoint,
    ownLog: memory.checkpoint.ownLog(),
    against: anchor,
  })
  const isWhole = found.problems.every(({ kind }) => kind === 'database')
  if (!isWhole || !deep) return { ...nothing, found, joined: isWhole && !deep ? lostLog(found, memory) : [] }
  const known = { counted: checkpoint?.count ?? 0, older: memory.checkpoint.older(), wordsOf: memory.actions.wordsOf }
  return joinedWith(deepVerify(log, memory.attempts(), known), { found, log, altered: alteredRuns(memory, sealsOf(setup)) })
}

/** Formats the first problem of a chain in the wording that all checks use. A database problem needs no receipt number. */
export function brokenChain({ kind, record, message }: VerifyProblem): string {
  return kind === 'database' ? message : `invalid chain at receipt ${record}: ${message}`
}

const nothing = { joined: [], unfinished: [], older: [], acceptable: { receipts: [], problems: [] } }

type Looked = { readonly found: Verification; readonly log: string; readonly altered: readonly string[] }

function joinedWith({ problems, unfinished, withoutRun }: DeepResult, { found, log, altered }: Looked): ChainCheck {
  const { holes = [], older = [], accepted = new Set(), unexplainedAcceptances = [] } = withoutRun ?? {}
  const wrong = [...altered, ...problems.map(({ message }) => message), ...unexplainedAcceptances].filter(
    (message) => !accepted.has(message),
  )
  const joined = [...wrong, ...belongingToNone(log, holes)]
  return {
    found,
    joined: joined.map((message) => ({ message })),
    unfinished,
    older: belongingToNone(log, older),
    acceptable: { receipts: holes, problems: wrong },
  }
}

/** A home without log, head file and checkpoint has no receipts yet, unless its journal names some. */
function lostLog({ count }: Verification, { checkpoint, journal }: Memory): Message[] {
  if (count > 0 || checkpoint.get() || !journal.namesAny()) return []
  return [{ message: 'the journal names receipts, but the receipts log is gone; restore it from a backup' }]
}

function alteredRuns(memory: Memory, seal: Seal | undefined): string[] {
  const found: string[] = []
  const tidy = collectGarbageEvery(2_000)
  for (const runId of memory.journal.ids()) {
    tidy()
    const altered = alteration(memory, runId, seal)
    if (altered) found.push(`run ${runId}: ${altered.message} (journal entry ${altered.seq})`)
  }
  return found
}

const namedAtMost = 20

function belongingToNone(log: string, spans: readonly Span[]): string[] {
  const numbers = spans.flatMap(({ first, last }) => Array.from({ length: Math.min(namedAtMost, last - first + 1) }, (_, at) => first + at))
  const count = spans.reduce((sum, { first, last }) => sum + last - first + 1, 0)
  const named = numbers.slice(0, namedAtMost).map((seq) => `${nameOf(log, seq)} belongs to no run: rows of the journal were lost or erased`)
  return count > namedAtMost ? [...named, `${count - namedAtMost} more receipts belong to no run`] : named
}

function nameOf(log: string, seq: number): string {
  const receipt = showReceipt(log, String(seq))
  return receipt ? `receipt ${seq} (${visible(receipt.tool)}, ${receipt.timestamp}, ${visible(receipt.conversation_id)})` : `receipt ${seq}`
}
