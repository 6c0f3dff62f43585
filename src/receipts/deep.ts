/** The deep check: what the journal says was attempted, held against what the receipts say. */

import { findLine, numberOf } from './find-receipt.ts'
import { readReceipt } from './form/grammar.ts'
import type { Receipt } from './form/receipt.ts'
import { readLines } from './form/receipt-lines.ts'
import { readKey } from './key.ts'
import { sealedReceipt } from './latest.ts'
import { isAdoption } from './left-over.ts'
import { showReceipt } from './list-receipts.ts'
import { diskFailure } from './receipt-failure.ts'
import { createFingerprints, type ExpectedReceipt, type Fingerprints } from './receipt-fingerprints.ts'
import { filesOf } from './segments.ts'
import { tidyEvery } from './tidy.ts'
import { isOperatorAction, type KnownToDatabase, type WithoutRun, withoutRun } from './without-run.ts'

/** One attempt as journalled, its hashes computed from what the journal holds now. `pending`: a living process is about it; `unfinished`: a dead one was. */
export type JournalledAttempt = {
  readonly runId: string
  readonly callId: string
  readonly conversationId: string
  readonly tool: string
  readonly argsHash: string
  readonly status?: string
  readonly resultHash?: string
  /** What the journal says confined its children. */
  readonly sandbox?: string
  readonly receiptId?: string
  readonly pending: boolean
  readonly unfinished: boolean
}

export type DeepProblem = {
  readonly runId: string
  readonly callId: string
  readonly id?: string
  readonly kind: 'no_receipt' | 'no_result' | 'differs' | 'shared'
  readonly message: string
}

/** `withoutAttempt` counts receipts that the attempts given do not name; `withoutRun`, when these were all there are, what is known of them. */
export type DeepResult = {
  readonly ok: boolean
  readonly attempts: number
  readonly pending: number
  /** Calls that a crash left without a result, in words: nothing was altered. */
  readonly unfinished: readonly string[]
  readonly withoutAttempt: number
  readonly withoutRun?: WithoutRun
  readonly problems: readonly DeepProblem[]
}

/**
 * Run it on a log that `verifyReceipts` found whole. Every attempt must have a receipt of its own, and the two must agree; with `known`, which
 * says that these attempts are all there are, every receipt must have its attempt, or be accounted for.
 */
export function deepVerify(path: string, attempts: Iterable<JournalledAttempt>, known?: KnownToDatabase): DeepResult {
  const { prints, special } = readLog(path)
  const judged = judgeAll(attempts, (attempt, id) => {
    const seq = numberOf(id)
    const isFirst = prints.take(seq)
    if (isFirst && prints.fits(seq, toldBy(attempt, id))) return []
    // What differs is told with the receipt at hand.
    return judge(attempt, prints.has(seq) ? showReceipt(path, id) : undefined, !isFirst)
  })
  const log = { count: prints.count(), special, isNamed: prints.isTaken }
  return { ...judged, withoutAttempt: prints.untaken(), ...(known ? { withoutRun: withoutRun(log, known) } : {}) }
}

/** Of a few attempts of a log that may be long: only their receipts are looked up, and each is held against its own hash and seal. */
export function judgeSome(paths: { readonly log: string; readonly key: string }, attempts: Iterable<JournalledAttempt>): Judged {
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

type Judged = Omit<DeepResult, 'withoutAttempt' | 'withoutRun'>
type Judge = (attempt: JournalledAttempt, receiptId: string) => readonly DeepProblem[]

/** `judge` is asked about attempts that have their result, and the id of a receipt. */
function judgeAll(attempts: Iterable<JournalledAttempt>, judge: Judge): Judged {
  const problems: DeepProblem[] = []
  const unfinished: string[] = []
  const count = { attempts: 0, pending: 0 }
  const tidy = tidyEvery(20_000)
  for (const attempt of attempts) {
    const { receiptId, status } = attempt
    const what = nameOf(attempt)
    count.attempts += 1
    tidy()
    if (attempt.pending) count.pending += 1
    else if (attempt.unfinished) unfinished.push(`${what} began before its process died; the next start gives it a result`)
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

function toldBy({ conversationId, tool, argsHash, status = '', resultHash = '', sandbox }: JournalledAttempt, id: string): ExpectedReceipt {
  const texts = { id, conversationId: conversationId.toWellFormed(), tool: tool.toWellFormed() }
  return { ...texts, argsHash, status, resultHash, ...(sandbox === undefined ? {} : { sandbox }) }
}

function differences(attempt: JournalledAttempt, receipt: Receipt): string[] {
  const told = toldBy(attempt, receipt.id)
  const pairs = [
    ['conversation', told.conversationId, receipt.conversation_id],
    ['tool', told.tool, receipt.tool],
    ['arguments', told.argsHash, receipt.args_hash],
    ['status', told.status, receipt.status],
    ['result', told.resultHash, receipt.result_hash],
  ] as const
  const wrong = pairs.filter(([, journal, log]) => journal !== log).map(([name]) => name)
  return told.sandbox === undefined || told.sandbox === receipt.sandbox ? wrong : [...wrong, 'sandbox']
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

/** What cannot be read is for `verifyReceipts` to say. */
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
