/** Reads receipts for display, without verifying them (`verifyReceipts` does that), and reads no more of the log than requested. */

import { findLine, numberOf } from './find-receipt.ts'
import { readReceipt } from './form/grammar.ts'
import { linesBackward } from './form/lines-backward.ts'
import type { Receipt } from './form/receipt.ts'
import type { Line } from './form/receipt-lines.ts'
import { diskFailure, isMissing, type ReceiptFailure } from './receipt-failure.ts'
import { filesOf } from './segments.ts'

/** `unreadable` counts the lines read that are not receipts; `torn` means an unfinished last line. */
export type ReceiptList =
  | { readonly ok: true; readonly receipts: readonly Receipt[]; readonly unreadable: number; readonly torn: boolean }
  | { readonly ok: false; readonly failure: ReceiptFailure }

/** Returns the newest `limit` receipts, oldest first. Treats a missing log as empty. */
export function listReceipts({ path, limit }: { readonly path: string; readonly limit: number }): ReceiptList {
  const seen = { receipts: [] as Receipt[], unreadable: 0, torn: false }
  try {
    for (const { text, torn } of newestFirst(path)) {
      if (seen.receipts.length >= limit) break
      const receipt = torn || text === undefined ? undefined : readReceipt(text)
      if (torn) seen.torn = true
      else if (receipt) seen.receipts.push(receipt)
      else seen.unreadable += 1
    }
  } catch (error) {
    const failure = diskFailure(path, error)
    if (!failure) throw error
    return { ok: false, failure }
  }
  return { ok: true, ...seen, receipts: seen.receipts.reverse() }
}

/** Yields the lines of all segments. @throws errno errors other than a missing file */
export function* newestFirst(log: string): Generator<Line> {
  for (const path of filesOf(log).toReversed()) {
    try {
      yield* linesBackward(path)
    } catch (error) {
      if (!isMissing(error)) throw error
    }
  }
}

/** @returns the receipt with this id or number, as stored in the log; undefined when there is none or the log cannot be read. */
export function showReceipt(path: string, wanted: string): Receipt | undefined {
  const seq = numberOf(wanted)
  const isWanted = (receipt: Receipt | undefined) => receipt?.id === wanted || String(receipt?.seq) === wanted
  try {
    const found = seq > 0 ? receiptOf(findLine(path, seq)) : undefined
    if (isWanted(found)) return found
    // Search the whole log if it is out of order, but not if it ends before this number.
    return listed(path, seq)?.find(isWanted)
  } catch (error) {
    if (!diskFailure(path, error)) throw error
    return undefined
  }
}

function listed(path: string, seq: number): readonly Receipt[] | undefined {
  const all = listReceipts({ path, limit: 1 })
  const last = all.ok ? (all.receipts[0]?.seq ?? 0) : 0
  if (seq === 0 || seq > last) return undefined
  const whole = listReceipts({ path, limit: Number.MAX_SAFE_INTEGER })
  return whole.ok ? whole.receipts : undefined
}

function receiptOf(line: string | undefined): Receipt | undefined {
  return line === undefined ? undefined : readReceipt(line)
}
