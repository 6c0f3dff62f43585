/** Reads receipts without verifying the chain (`verifyReceipts` does that), and reads no more of a long log than requested. */

import { closeSync, fstatSync, readSync } from 'node:fs'
import { atEnd, unlessMissing } from '../kit/errors.ts'
import type { WrittenReceipt } from './contract.ts'
import { type Receipt, readLink, readReceipt, sealOf } from './form/receipt.ts'
import { decode, type LogLine, longestLine, openLog } from './form/receipt-lines.ts'
import { readKey } from './key.ts'
import { diskFailure, type Failed, guarded } from './receipt-failure.ts'
import { filesOf } from './segments.ts'

/** `unreadable` counts the lines read that are not receipts; `torn` means an unfinished last line. */
type ReceiptList =
  | { readonly ok: true; readonly receipts: readonly Receipt[]; readonly unreadable: number; readonly torn: boolean }
  | Failed

/** Returns the newest `limit` receipts, oldest first. Treats a missing log as empty. */
export function listReceipts({ path, limit }: { readonly path: string; readonly limit: number }): ReceiptList {
  return guarded(path, () => {
    const seen = { receipts: [] as Receipt[], unreadable: 0, torn: false }
    for (const { text, torn } of newestFirst(path)) {
      if (seen.receipts.length >= limit) break
      const receipt = torn || text === undefined ? undefined : readReceipt(text)
      if (torn) seen.torn = true
      else if (receipt) seen.receipts.push(receipt)
      else seen.unreadable += 1
    }
    return { ok: true, ...seen, receipts: seen.receipts.reverse() }
  })
}

/** Yields the lines of all segments. @throws errno errors other than a missing file */
function* newestFirst(log: string): Generator<LogLine> {
  for (const path of filesOf(log).toReversed()) {
    const file = unlessMissing(() => openLog(path))
    if (file === undefined) continue
    using _end = atEnd(() => closeSync(file))
    yield* linesBackward(file)
  }
}

/** @returns the receipt with this id or number, as stored in the log; undefined when there is none or the log cannot be read. */
export function showReceipt(path: string, idOrNumber: string): Receipt | undefined {
  const seq = numberOf(idOrNumber)
  const isMatch = (receipt: Receipt | undefined) => receipt?.id === idOrNumber || String(receipt?.seq) === idOrNumber
  try {
    const found = readReceipt((seq > 0 ? findLine(path, seq) : undefined) ?? '')
    if (isMatch(found)) return found
    // Search the whole log if it is out of order, but not if it ends before this number.
    return listed(path, seq)?.find(isMatch)
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

const pieceSize = 64 * 1024
const newline = 0x0a

/**
 * Reads the lines of a file in pieces from last to first, so that the newest few of a million lines are found fast. Yields lines like
 * `readLines`, but the first one may be torn; stops at a line that is too long.
 * @throws errno errors
 */
function* linesBackward(file: number): Generator<LogLine> {
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

function* reversed(decoder: TextDecoder, bytes: Buffer): Generator<LogLine> {
  let end = bytes.lastIndexOf(newline) + 1
  if (end < bytes.length) yield { text: decode(decoder, bytes.subarray(end)), bytes: bytes.length - end, torn: true }
  while (end > 0) {
    const begin = end < 2 ? 0 : bytes.lastIndexOf(newline, end - 2) + 1
    yield { text: decode(decoder, bytes.subarray(begin, end - 1)), bytes: end - begin, torn: false }
    end = begin
  }
}

/** Returns the number in a receipt's id, or a plain number; 0 when there is none. */
export function numberOf(id: string): number {
  return Number(/(?:^|-)([1-9][0-9]{0,14})$/.exec(id)?.[1] ?? 0)
}

/** Returns the numbers in receipt ids as spans, in ascending order. */
export function spansOf(ids: readonly string[]): { readonly first: number; readonly last: number }[] {
  const spans: { first: number; last: number }[] = []
  for (const seq of ids.map(numberOf).sort((a, b) => a - b)) {
    const last = spans.at(-1)
    if (last?.last === seq - 1) last.last = seq
    else spans.push({ first: seq, last: seq })
  }
  return spans
}

/** In bytes: a range of this size or less is read completely. */
const near = 16 * 1024

/**
 * Returns the line of receipt `seq` by binary search, with only its number checked: receipts are numbered in order across all segments;
 * undefined when there is none, or when the log is out of order. @throws errno errors other than a missing file
 */
export function findLine(log: string, seq: number): string | undefined {
  for (const path of filesOf(log).toReversed()) {
    const file = unlessMissing(() => openLog(path))
    if (file === undefined) continue
    using _end = atEnd(() => closeSync(file))
    const first = ahead(file, 0, () => true)
    if (first && first.seq > seq) continue
    return first ? search(file, seq) : undefined
  }
}

type Numbered = { readonly text: string; readonly seq: number }

function search(file: number, seq: number): string | undefined {
  // The line starts after `low` (or at the start of the file) and not after `high`.
  let [low, high] = [0, fstatSync(file).size]
  while (high - low > near) {
    const middle = low + Math.floor((high - low) / 2)
    const found = ahead(file, middle, () => true)
    if (found && found.seq < seq) low = middle
    else if (found?.seq === seq) return found.text
    else high = middle
  }
  const found = ahead(file, low, (line) => line.seq >= seq)
  return found?.seq === seq ? found.text : undefined
}

/** Returns the first numbered line that `isWanted` accepts, from the start of the file or after the next newline. */
function ahead(file: number, position: number, isMatch: (line: Numbered) => boolean): Numbered | undefined {
  for (let length = 4096; length <= 1 << 22; length *= 4) {
    const bytes = new Uint8Array(length)
    const read = readSync(file, bytes, 0, length, position)
    const lines = new TextDecoder()
      .decode(bytes.subarray(0, read))
      .split('\n')
      .slice(position === 0 ? 0 : 1, -1)
    const found = lines.map(numbered).find((line) => line !== undefined && isMatch(line))
    if (found || read < length) return found
  }
}

/** Inside a string value every quote follows a backslash, so this matches only the member itself. */
function numbered(text: string): Numbered | undefined {
  const seq = /"seq":([1-9][0-9]{0,14}),"status":"/.exec(text)?.[1]
  return seq === undefined ? undefined : { text, seq: Number(seq) }
}

/**
 * Returns the receipts with a number above `after`, oldest first. Stops at a line that is not a sealed receipt and returns only what
 * follows it. @throws errno errors other than a missing log
 */
export function latestReceipts(paths: { readonly log: string; readonly key: string }, after: number): WrittenReceipt[] {
  const key = readKey(paths.key)
  const found: Receipt[] = []
  if (!key.ok) return []
  for (const { text, torn } of newestFirst(paths.log)) {
    if (torn) continue
    const receipt = text === undefined ? undefined : sealedReceipt(text, key.key)
    if (!receipt || receipt.seq <= after) break
    found.push(receipt)
  }
  return found.reverse().map(written)
}

function written(receipt: Receipt): WrittenReceipt {
  const { id, seq, tool, status, risk, approval, error, sandbox, changes } = receipt
  const [conversationId, argsHash, resultHash] = [receipt.conversation_id, receipt.args_hash, receipt.result_hash]
  return { id, seq, conversationId, tool, argsHash, resultHash, status, risk, approval, error, sandbox, changes }
}

/** Returns the receipt of this line if its hash and its mac are valid. */
export function sealedReceipt(line: string, key: Uint8Array): Receipt | undefined {
  const link = readLink(line)
  return link && link.content === link.own && sealOf(key, link.own) === link.mac ? readReceipt(line) : undefined
}
