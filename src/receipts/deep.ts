/** The deep check: what the journal says was attempted, held against what the receipts say. */

import type { Receipt } from './form/receipt.ts'
import { listReceipts } from './list-receipts.ts'

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

/** `withoutAttempt` counts receipts of which the journal knows nothing: cleared conversations, and crashes between receipt and journal. */
export type DeepResult = {
  readonly ok: boolean
  readonly attempts: number
  readonly pending: number
  /** Calls that a crash left without a result, in words: nothing was altered. */
  readonly unfinished: readonly string[]
  readonly withoutAttempt: number
  readonly problems: readonly DeepProblem[]
}

/** Run it on a log that `verifyReceipts` found whole. Every attempt must have a receipt of its own, and the two must agree. */
export function deepVerify(path: string, attempts: Iterable<JournalledAttempt>): DeepResult {
  const receipts = receiptsById(path)
  const used = new Set<string>()
  const problems: DeepProblem[] = []
  const unfinished: string[] = []
  const count = { attempts: 0, pending: 0 }
  for (const attempt of attempts) {
    count.attempts += 1
    if (attempt.pending) count.pending += 1
    else if (attempt.unfinished) unfinished.push(`${nameOf(attempt)} began before its process died; the next start gives it a result`)
    else problems.push(...judge(attempt, receipts, used))
    if (attempt.receiptId !== undefined) used.add(attempt.receiptId)
  }
  const withoutAttempt = [...receipts.keys()].filter((id) => !used.has(id)).length
  return { ok: problems.length === 0, ...count, unfinished, withoutAttempt, problems }
}

function judge(attempt: JournalledAttempt, receipts: ReadonlyMap<string, Receipt>, used: ReadonlySet<string>): DeepProblem[] {
  const { runId, callId, receiptId: id } = attempt
  const what = nameOf(attempt)
  if (attempt.status === undefined) return [{ runId, callId, kind: 'no_result', message: `${what} began, and its result is gone` }]
  if (id === undefined) return [{ runId, callId, kind: 'no_receipt', message: `${what} has no receipt` }]
  const receipt = receipts.get(id)
  if (!receipt) return [{ runId, callId, id, kind: 'no_receipt', message: `${what} names ${id}, which is not in the log` }]
  if (used.has(id)) return [{ runId, callId, id, kind: 'shared', message: `${what} names ${id}, which another call named before` }]
  const wrong = differences(attempt, receipt)
  return wrong.length === 0 ? [] : [{ runId, callId, id, kind: 'differs', message: `${what} and ${id} differ in ${wrong.join(', ')}` }]
}

function nameOf({ runId, callId, tool }: JournalledAttempt): string {
  return `call ${callId} (${tool}) of run ${runId}`
}

function differences(attempt: JournalledAttempt, receipt: Receipt): string[] {
  const pairs = [
    ['conversation', attempt.conversationId.toWellFormed(), receipt.conversation_id],
    ['tool', attempt.tool.toWellFormed(), receipt.tool],
    ['arguments', attempt.argsHash, receipt.args_hash],
    ['status', attempt.status, receipt.status],
    ['result', attempt.resultHash, receipt.result_hash],
  ] as const
  const wrong = pairs.filter(([, journal, log]) => journal !== log).map(([name]) => name)
  return attempt.sandbox === undefined || attempt.sandbox === receipt.sandbox ? wrong : [...wrong, 'sandbox']
}

function receiptsById(path: string): Map<string, Receipt> {
  const listed = listReceipts({ path, limit: Number.MAX_SAFE_INTEGER })
  return new Map(listed.ok ? listed.receipts.map(({ receipt }) => [receipt.id, receipt]) : [])
}
