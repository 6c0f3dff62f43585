/** Reading receipts to look at them. It judges nothing: that is `verifyReceipts`. */

import { readReceipt } from './form/grammar.ts'
import type { Receipt } from './form/receipt.ts'
import { readLines } from './form/receipt-lines.ts'
import { diskFailure, isMissing, type ReceiptFailure } from './receipt-failure.ts'
import { filesOf } from './segments.ts'

/** `record` counts lines from 1, of `count`. Lines that are no receipts are in `unreadable`; `torn` is an unfinished one at the end. */
export type ReceiptList =
  | {
      readonly ok: true
      readonly receipts: readonly { readonly record: number; readonly receipt: Receipt }[]
      readonly count: number
      readonly unreadable: readonly number[]
      readonly torn: boolean
    }
  | { readonly ok: false; readonly failure: ReceiptFailure }

type Filter = { readonly path: string; readonly limit: number; readonly wanted: (receipt: Receipt) => boolean }

/** The newest `limit` receipts, oldest of them first. A log that does not exist yet is an empty one. */
export function listReceipts({
  path,
  limit,
  conversationId,
}: {
  readonly path: string
  readonly limit: number
  readonly conversationId?: string
}): ReceiptList {
  return gather({ path, limit, wanted: (receipt) => conversationId === undefined || receipt.conversation_id === conversationId })
}

/** @returns the receipt with this id or this number, as the log has it; undefined when there is none or the log cannot be read. */
export function showReceipt(path: string, wanted: string): Receipt | undefined {
  const found = gather({ path, limit: 1, wanted: ({ id, seq }) => id === wanted || String(seq) === wanted })
  return found.ok ? found.receipts[0]?.receipt : undefined
}

/** Of every segment, oldest first. @throws errno errors, ENOENT when there is no log */
function* linesOfAll(path: string) {
  for (const file of filesOf(path)) yield* readLines(file)
}

function gather({ path, limit, wanted }: Filter): ReceiptList {
  const receipts: { record: number; receipt: Receipt }[] = []
  const unreadable: number[] = []
  const seen = { lines: 0, torn: false }
  try {
    for (const { text, torn } of linesOfAll(path)) {
      if (torn) seen.torn = true
      else seen.lines += 1
      const receipt = torn || text === undefined ? undefined : readReceipt(text)
      if (receipt && wanted(receipt)) receipts.push({ record: seen.lines, receipt })
      else if (!receipt && !torn) unreadable.push(seen.lines)
      // So that a long log is not held in memory for its last few lines.
      if (receipts.length > 2 * limit + 64) receipts.splice(0, receipts.length - limit)
    }
  } catch (error) {
    const failure = diskFailure(path, error)
    if (!failure) throw error
    if (!isMissing(error)) return { ok: false, failure }
  }
  return { ok: true, receipts: limit > 0 ? receipts.slice(-limit) : [], count: seen.lines, unreadable, torn: seen.torn }
}
