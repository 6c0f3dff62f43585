/** Runs the deep check: compares the attempts in the journal with the receipts in the log. */

import type { JournalledAttempt } from '../contract.ts'
import { type Receipt, readReceipt } from '../form/receipt.ts'
import { collectGarbageEvery, readLines } from '../form/receipt-lines.ts'
import { readKey } from '../key.ts'
import { isAdoption } from '../left-over.ts'
import { findLine, numberOf, sealedReceipt, showReceipt } from '../list-receipts.ts'
import { diskFailure } from '../receipt-failure.ts'
import { filesOf } from '../segments.ts'
import { isOperatorAction, type KnownToDatabase, type WithoutRun, withoutRun } from '../without-run.ts'

export type DeepProblem = {
  readonly runId: string
  readonly callId: string
  readonly id?: string
  readonly kind: 'no_receipt' | 'no_result' | 'differs' | 'shared' | 'contradiction'
  readonly message: string
}

/** `withoutAttempt` counts receipts that no given attempt names; `withoutRun` explains them when the attempts are complete. */
export type DeepResult = {
  readonly ok: boolean
  readonly attempts: number
  readonly pending: number
  /** Descriptions of calls that a crash left without a result: nothing was altered. */
  readonly unfinished: readonly string[]
  readonly withoutAttempt: number
  readonly withoutRun?: WithoutRun
  readonly problems: readonly DeepProblem[]
}

/**
 * Call it for a log that passed `verifyReceipts`. Every attempt must have its own receipt, and the two must agree. `known` says that the
 * attempts are complete: every receipt must then have its attempt, or be accounted for.
 */
export function deepVerify(path: string, attempts: Iterable<JournalledAttempt>, known?: KnownToDatabase): DeepResult {
  const { prints, special } = readLog(path)
  const judged = judgeAll(attempts, (attempt, id) => {
    const seq = numberOf(id)
    const isFirst = prints.take(seq)
    if (isFirst && prints.fits(seq, expectedOf(attempt, id))) return []
    // The message about a difference needs the whole receipt.
    return judge(attempt, prints.has(seq) ? showReceipt(path, id) : undefined, !isFirst)
  })
  const log = { count: prints.count(), special, isNamed: prints.isTaken }
  return { ...judged, withoutAttempt: prints.untaken(), withoutRun: known && withoutRun(log, known) }
}

/** Checks a few attempts against a log that may be long: looks up only their receipts, and checks each receipt's hash and mac. */
export function judgeSome(paths: { readonly log: string; readonly key: string }, attempts: Iterable<JournalledAttempt>): AttemptVerdicts {
  const key = readKey(paths.key)
  const used = new Set<string>()
  return judgeAll(attempts, (attempt, id) => {
    const isFirst = !used.has(id)
    used.add(id)
    const line = findLine(paths.log, numberOf(id))
    const receipt = line === undefined || !key.ok ? undefined : sealedReceipt(line, key.key)
    if (line !== undefined && !receipt)
      return [{ ...placeOf(attempt), id, kind: 'differs', message: `${nameOf(attempt)}: ${id} was altered in the log` }]
    return judge(attempt, receipt?.id === id ? receipt : undefined, !isFirst)
  })
}

type AttemptVerdicts = Omit<DeepResult, 'withoutAttempt' | 'withoutRun'>
type Judge = (attempt: JournalledAttempt, receiptId: string) => readonly DeepProblem[]

/** Calls `judge` with each attempt that has a result, and its receipt id. */
function judgeAll(attempts: Iterable<JournalledAttempt>, judge: Judge): AttemptVerdicts {
  const problems: DeepProblem[] = []
  const unfinished: string[] = []
  const count = { attempts: 0, pending: 0 }
  const tidy = collectGarbageEvery(20_000)
  for (const attempt of attempts) {
    const { receiptId, status, contradiction } = attempt
    const what = nameOf(attempt)
    count.attempts += 1
    tidy()
    if (attempt.pending) count.pending += 1
    else if (attempt.unfinished) unfinished.push(`${what} began before its process died; the next start gives it a result`)
    else if (contradiction !== undefined)
      problems.push({ ...placeOf(attempt), kind: 'contradiction', message: `${what} contradicts itself: ${contradiction}` })
    else if (status === undefined)
      problems.push({ ...placeOf(attempt), kind: 'no_result', message: `${what} began, and its result is gone` })
    else if (receiptId === undefined) problems.push({ ...placeOf(attempt), kind: 'no_receipt', message: `${what} has no receipt` })
    else problems.push(...judge(attempt, receiptId))
  }
  return { ok: problems.length === 0, ...count, unfinished, problems }
}

function judge(attempt: JournalledAttempt, receipt: Receipt | undefined, isUsed: boolean): DeepProblem[] {
  const { receiptId: id = '' } = attempt
  const [place, what] = [placeOf(attempt), nameOf(attempt)]
  if (!receipt) return [{ ...place, id, kind: 'no_receipt', message: `${what} names ${id}, which is not in the log` }]
  if (isUsed) return [{ ...place, id, kind: 'shared', message: `${what} names ${id}, which another call named before` }]
  const wrong = differences(attempt, receipt)
  return wrong.length === 0 ? [] : [{ ...place, id, kind: 'differs', message: `${what} and ${id} differ in ${wrong.join(', ')}` }]
}

function placeOf({ runId, callId }: JournalledAttempt): Pick<DeepProblem, 'runId' | 'callId'> {
  return { runId, callId }
}

function nameOf({ runId, callId, tool }: JournalledAttempt): string {
  return `call ${callId} (${tool}) of run ${runId}`
}

function expectedOf({ conversationId, tool, argsHash, status = '', resultHash = '', sandbox, changes }: JournalledAttempt, id: string) {
  const texts = { id, conversationId: conversationId.toWellFormed(), tool: tool.toWellFormed() }
  const expected: ExpectedReceipt = { ...texts, argsHash, status, resultHash, changes }
  return sandbox === undefined ? expected : { ...expected, sandbox }
}

function differences(attempt: JournalledAttempt, receipt: Receipt): string[] {
  const expected = expectedOf(attempt, receipt.id)
  const pairs = [
    ['conversation', expected.conversationId, receipt.conversation_id],
    ['tool', expected.tool, receipt.tool],
    ['arguments', expected.argsHash, receipt.args_hash],
    ['status', expected.status, receipt.status],
    ['result', expected.resultHash, receipt.result_hash],
    ['changes', expected.changes, receipt.changes],
  ] as const
  const wrong = pairs.filter(([, journal, log]) => journal !== log).map(([name]) => name)
  return expected.sandbox === undefined || expected.sandbox === receipt.sandbox ? wrong : [...wrong, 'sandbox']
}

function readLog(path: string): { readonly prints: Fingerprints; readonly special: readonly Receipt[] } {
  const prints = createFingerprints()
  const special: Receipt[] = []
  for (const receipt of receiptsOf(path)) {
    prints.add(receipt)
    if (isAdoption(receipt) || isOperatorAction(receipt)) special.push(receipt)
  }
  return { prints, special }
}

/** Ignores unreadable lines, because `verifyReceipts` reports them. */
function* receiptsOf(log: string): Generator<Receipt> {
  try {
    for (const file of filesOf(log)) {
      for (const { text, torn } of readLines(file)) {
        const receipt = torn || text === undefined ? undefined : readReceipt(text)
        if (receipt) yield receipt
      }
    }
  } catch (error) {
    if (!diskFailure(log, error)) throw error
  }
}

/** The fields of a call that receipt and journal share. `sandbox` is compared only where the journal contains it. */
type ExpectedReceipt = {
  readonly id: string
  readonly conversationId: string
  readonly tool: string
  readonly argsHash: string
  readonly status: string
  readonly resultHash: string
  readonly sandbox?: string
  readonly changes?: string
}

type Fingerprints = {
  /** Returns the highest receipt number. */
  count(): number
  add(receipt: Receipt): void
  has(seq: number): boolean
  /** Tells whether that receipt has these values. */
  fits(seq: number, expected: ExpectedReceipt): boolean
  /** Marks the receipt as named by the journal. @returns false when it was already marked */
  take(seq: number): boolean
  isTaken(seq: number): boolean
  /** Returns how many receipts the journal did not name. */
  untaken(): number
}

/** Bytes of a SHA-256: enough that nobody finds another text with this prefix. */
const length = 16
const sandboxes: readonly (string | undefined)[] = [undefined, 'bubblewrap', 'landlock', 'none']
const taken = 0x80
const known = 0x40

/** Stores about twenty bytes per receipt for the deep check, so that a million receipts do not fill the memory. */
function createFingerprints(): Fingerprints {
  let prints = new Uint8Array(length * 1024)
  let marks = new Uint8Array(1024)
  let highest = 0

  function grow(seq: number): void {
    const room = Math.max(seq + 1, marks.length * 2)
    const [more, wider] = [new Uint8Array(room), new Uint8Array(room * length)]
    more.set(marks)
    wider.set(prints)
    marks = more
    prints = wider
  }

  function add({ seq, id, conversation_id, tool, args_hash, status, result_hash, sandbox, changes }: Receipt): void {
    if (seq >= marks.length) grow(seq)
    const expected = { id, conversationId: conversation_id, tool, argsHash: args_hash, status, resultHash: result_hash, changes }
    prints.set(printOf(expected), seq * length)
    marks[seq] = known | Math.max(0, sandboxes.indexOf(sandbox))
    highest = Math.max(highest, seq)
  }

  const markOf = (seq: number) => marks[seq] ?? 0
  const has = (seq: number) => (markOf(seq) & known) !== 0
  const isTaken = (seq: number) => (markOf(seq) & taken) !== 0

  function fits(seq: number, expected: ExpectedReceipt): boolean {
    const at = seq * length
    const isSame = has(seq) && Buffer.from(printOf(expected)).equals(prints.subarray(at, at + length))
    return isSame && (expected.sandbox === undefined || sandboxes[markOf(seq) & 0x0f] === expected.sandbox)
  }

  function take(seq: number): boolean {
    if (isTaken(seq) || !has(seq)) return !isTaken(seq)
    marks[seq] = markOf(seq) | taken
    return true
  }

  function untaken(): number {
    return marks.reduce((sum, mark) => sum + ((mark & (known | taken)) === known ? 1 : 0), 0)
  }

  return { count: () => highest, add, has, fits, take, isTaken, untaken }
}

function printOf({ id, conversationId, tool, argsHash, status, resultHash, changes }: ExpectedReceipt): Uint8Array {
  const text = JSON.stringify([id, conversationId, tool, argsHash, status, resultHash, changes])
  return new Bun.CryptoHasher('sha256').update(text).digest().subarray(0, length)
}
