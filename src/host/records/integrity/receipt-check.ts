/**
 * Checks the receipts of this home against their checkpoint and, on request, against the journal and its digests; accepts what the operator
 * accepts.
 */

import { attempt } from '../../../kit/errors.ts'
import { visible } from '../../../kit/text.ts'
import { attempts } from '../../../memory/journal/attempts.ts'
import type { Memory } from '../../../memory/memory.ts'
import type { RecordWriter } from '../../../memory/record-writer.ts'
import type { Seal } from '../../../receipts/contract.ts'
import { type Anchor, sealAnchor } from '../../../receipts/form/anchor.ts'
import { collectGarbageEvery } from '../../../receipts/form/receipt-lines.ts'
import { readKey } from '../../../receipts/key.ts'
import type { Span } from '../../../receipts/left-over.ts'
import { showReceipt } from '../../../receipts/list-receipts.ts'
import { type DeepResult, deepVerify } from '../../../receipts/verify/deep.ts'
import { type Verification, type VerifyProblem, verifyReceipts } from '../../../receipts/verify/verify-chain.ts'
import { acceptance } from '../../../receipts/without-run.ts'
import type { Divergence, Replay } from '../../../runtime/replay/replay.ts'
import { ownProgram } from '../../../service/own-program.ts'
import type { Setup } from '../../api.ts'
import type { ReceiptCheck, ReceiptCheckOptions } from '../../contract/records-api.ts'
import { FailureError } from '../../failure.ts'
import { receiptPaths, sealsOf } from './create-record.ts'

type ChainMessage = { readonly message: string }

export type ChainCheck = {
  readonly found: Verification
  /** Altered journal entries, attempts on which receipts and journal disagree, then receipts that belong to no run. */
  readonly joined: readonly ChainMessage[]
  /** Calls that a crash left without a result, as sentences. */
  readonly unfinished: readonly string[]
  /** Receipts of older versions that belong to no run, as sentences. */
  readonly older: readonly string[]
  /** The problems that an operator could accept: the receipts that belong to no run, and the other problems of the journal. */
  readonly acceptable: { readonly receipts: readonly Span[]; readonly problems: readonly string[] }
}

type ChainCheckOptions = {
  readonly setup: Pick<Setup, 'config' | 'paths'>
  readonly memory: Memory
  readonly anchor?: Anchor
  /** Compares the receipts with the journal, too. */
  readonly deep: boolean
}

/**
 * The check reads log, head file and database one after the other, and another process may write in between. So it counts a problem only if
 * it remains while nobody can write; a log without problems needs no lock, which would make other processes wait.
 */
export function checkChain(request: ChainCheckOptions): ChainCheck {
  const first = checkOnce(request)
  const { found, joined, unfinished, older } = first
  const spotless = found.ok && found.warnings.length + joined.length + unfinished.length + older.length === 0
  return spotless ? first : request.memory.transaction(() => checkOnce(request))
}

function checkOnce({ setup, memory, anchor, deep }: ChainCheckOptions): ChainCheck {
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
  return joinedWith(deepVerify(log, attempts(memory.store), known), { found, log, altered: alteredRuns(memory, sealsOf(setup)) })
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

/** Reports a missing log. A home without log, head file and checkpoint has no receipts yet, unless its journal names some. */
function lostLog({ count }: Verification, { checkpoint, journal }: Memory): ChainMessage[] {
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

/**
 * Finds the first altered journal entry of a run, or an altered end, and returns it as the place where a replay diverges. @returns undefined
 * when the running digest and the seal of the end match every entry as it was written
 */
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

/**
 * Returns the anchor of the receipts as they are now, after a check: to anchor a broken chain is useless. @throws FailureError `error` when
 * there are no receipts yet, `integrity` when the chain is broken
 */
export function anchorNow(setup: Pick<Setup, 'config' | 'paths'>, memory: Memory): Anchor {
  const checkpoint = memory.checkpoint.get()
  if (!checkpoint) throw new FailureError('error', 'there are no receipts to anchor yet')
  const { ok, problems } = checkChain({ setup, memory, deep: false }).found
  if (!ok) throw new FailureError('integrity', `not anchored: ${problems.slice(0, 1).map(brokenChain)}`)
  return checkpoint
}

/**
 * Has the receipts checked by a process of its own: the check of a long log takes seconds, which nothing else here should wait for. @throws
 * FailureError when the check itself could not be made
 */
export async function verifyInChild({ context, paths }: Setup, { deep = false, against }: ReceiptCheckOptions): Promise<ReceiptCheck> {
  const words = [...(deep ? ['--deep'] : []), ...(against === undefined ? [] : ['--against', against])]
  const child = Bun.spawn([ownProgram(), 'receipt', 'verify', '--json', ...words], {
    cwd: context.cwd,
    env: { ...context.env, BRAIDCLAW_HOME: paths.home },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()])
  await child.exited
  const found = attempt(() => {
    const { deep: joined, unfinished, older, ...report } = JSON.parse(stdout)
    return checkReport({ found: report, joined, unfinished, older }, deep)
  })
  if (!found) throw new FailureError('error', `the receipts could not be checked: ${stderr.trim() || `exit code ${child.exitCode}`}`)
  return found
}

/** Puts what a check found into sentences. */
export function checkReport({ found, joined, unfinished, older }: Omit<ChainCheck, 'acceptable'>, deep: boolean): ReceiptCheck {
  const { ok, count, completeness } = found
  const problems = [...found.problems.map(brokenChain), ...joined.map(({ message }) => message)]
  const warnings = [...found.warnings.map(({ message }) => message), ...older.map((message) => `of an older version: ${message}`)]
  return { ok: ok && joined.length === 0, deep, count, completeness, problems, warnings, unfinished }
}

/** `database`: why the database does not fit the log. Without a note nothing is accepted; the result then shows what could be. */
export type Accepted = {
  readonly database?: string
  readonly problems: readonly string[]
  readonly receipts: readonly Span[]
  /** The receipt of the acceptance. */
  readonly receipt?: string
}

type Acceptance = {
  readonly setup: Pick<Setup, 'config' | 'paths'>
  readonly memory: Memory
  readonly record: RecordWriter
  readonly by: string
  /** The operator's reason. */
  readonly note: string | undefined
}

/**
 * Lets the operator accept a record with gaps: it writes down what is missing, so that work can continue. Accepts all problems or none,
 * under the lock between processes. @throws FailureError `integrity` when the log itself is broken: that cannot be accepted.
 */
export function acceptRecord(request: Acceptance): Accepted {
  const { record, memory, note } = request
  if (note !== undefined) return record.transaction(() => accept(request, note))
  // A dry run: the transaction is rolled back.
  const dryRun: { found?: Accepted } = {}
  try {
    memory.transaction(() => {
      dryRun.found = fitted(request)
      throw new TakenBack()
    })
  } catch (error) {
    if (!(error instanceof TakenBack)) throw error
  }
  return dryRun.found ?? { problems: [], receipts: [] }
}

class TakenBack extends Error {}

function accept(request: Acceptance, note: string): Accepted {
  const found = fitted(request)
  const { database, problems, receipts } = found
  if (database === undefined && problems.length + receipts.length === 0) return found
  const input = { by: request.by, note, ...(database === undefined ? {} : { database }), problems, receipts }
  const receipt = request.record.recordAction({ conversationId: 'none', tool: acceptance, input, risk: 'high' })
  return { ...found, receipt }
}

/** Adopts the log as the database's own, then checks what is still wrong. */
function fitted({ setup, memory }: Acceptance): Accepted {
  const { found, ...before } = checkChain({ setup, memory, deep: true })
  const database = found.problems.find(({ kind }) => kind === 'database' || kind === 'seal' || kind === 'log')
  if (found.ok) return before.acceptable
  if (database) memory.checkpoint.adopt(endOf(setup))
  const { found: after, acceptable } = checkChain({ setup, memory, deep: true })
  const [broken] = after.problems
  if (broken)
    throw new FailureError('integrity', `${brokenChain(broken)}; this cannot be accepted: restore log, head file and key from a backup`)
  return { ...acceptable, database: database?.message }
}

/** Returns what the log itself records as its end. @throws FailureError `integrity` when the log is broken */
function endOf(setup: Acceptance['setup']) {
  const { log, head, key: keyPath } = receiptPaths(setup)
  const key = readKey(keyPath)
  if (!key.ok) throw new FailureError('integrity', key.failure.message)
  const { logId, count, head: last, size }: Verification = verifyReceipts({ path: log, headPath: head, key, checkpoint: undefined })
  if (logId === undefined) throw new FailureError('integrity', `the receipts log "${log}" is empty or missing; restore it from a backup`)
  return { ...sealAnchor(key.key, { logId, count, head: last }), size }
}
