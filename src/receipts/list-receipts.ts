/** Reads receipts for display, without verifying them (`verifyReceipts` does that), and reads no more of the log than requested. */

import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { findLine, numberOf } from './find-receipt.ts'
import { readReceipt } from './form/grammar.ts'
import type { Receipt } from './form/receipt.ts'
import { decode, type Line, longestLine } from './form/receipt-lines.ts'
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

const pieceSize = 64 * 1024
const newline = 0x0a

/**
 * Reads the lines of a file in pieces from last to first, so that the newest few of a million lines are found fast. Yields lines like
 * `readLines`, but the first one may be torn; stops at a line that is too long.
 * @throws errno errors
 */
function* linesBackward(path: string): Generator<Line> {
  const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    yield* backward(file)
  } finally {
    closeSync(file)
  }
}

function* backward(file: number): Generator<Line> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  let rest: Uint8Array = new Uint8Array(0)
  for (let position = fstatSync(file).size; position > 0; ) {
    const piece = new Uint8Array(Math.min(pieceSize, position))
    position -= piece.length
    readSync(file, piece, 0, piece.length, position)
    const held = Buffer.concat([piece, rest])
    // The text before this offset may continue a line of the previous piece.
    const begin = position === 0 ? 0 : held.indexOf(newline) + 1
    rest = position > 0 && begin === 0 ? held : held.subarray(0, begin)
    if (position === 0 || begin > 0) yield* reversed(decoder, held.subarray(begin))
    if (rest.length <= longestLine) continue
    yield { text: undefined, bytes: rest.length, torn: false }
    return
  }
}

function* reversed(decoder: TextDecoder, bytes: Buffer): Generator<Line> {
  let end = bytes.lastIndexOf(newline) + 1
  if (end < bytes.length) yield { text: decode(decoder, bytes.subarray(end)), bytes: bytes.length - end, torn: true }
  while (end > 0) {
    const begin = end < 2 ? 0 : bytes.lastIndexOf(newline, end - 2) + 1
    yield { text: decode(decoder, bytes.subarray(begin, end - 1)), bytes: end - begin, torn: false }
    end = begin
  }
}
