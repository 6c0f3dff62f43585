/** The newest receipts of a log, read from its end: for questions about the last few of what may be a million. */

import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import type { WrittenReceipt } from './draft.ts'
import { readLink, readReceipt } from './form/grammar.ts'
import { macOf, type Receipt } from './form/receipt.ts'
import { readKey } from './key.ts'
import { isMissing } from './receipt-failure.ts'
import { filesOf } from './segments.ts'

const firstRead = 64 * 1024

/**
 * The receipts with a number above `after`, oldest first. A line that is not a sealed receipt ends the search: only what follows it is
 * returned. @throws errno errors other than a missing log
 */
export function latestReceipts(paths: { readonly log: string; readonly key: string }, after: number): WrittenReceipt[] {
  const key = readKey(paths.key)
  const found: Receipt[] = []
  if (!key.ok) return []
  for (const path of filesOf(paths.log).toReversed()) {
    const { receipts, more } = receiptsAtEnd(path, after, key.key)
    found.unshift(...receipts)
    if (!more) break
  }
  return found.map(written)
}

function written({
  id,
  seq,
  conversation_id,
  tool,
  args_hash,
  result_hash,
  status,
  risk,
  approval,
  error,
  sandbox,
}: Receipt): WrittenReceipt {
  const optional = {
    ...(approval === undefined ? {} : { approval }),
    ...(error === undefined ? {} : { error }),
    ...(sandbox === undefined ? {} : { sandbox }),
  }
  return { id, seq, conversationId: conversation_id, tool, argsHash: args_hash, resultHash: result_hash, status, risk, ...optional }
}

type AtEnd = { readonly receipts: readonly Receipt[] /** The file before this one may hold more of them. */; readonly more: boolean }

function receiptsAtEnd(path: string, after: number, key: Uint8Array): AtEnd {
  const file = openIfThere(path)
  if (file === undefined) return { receipts: [], more: true }
  try {
    const { size } = fstatSync(file)
    for (let length = firstRead; ; length *= 4) {
      const lines = linesAtEnd(file, size, Math.min(length, size))
      const receipts = sealedFrom(lines, key)
      const wanted = receipts.filter(({ seq }) => seq > after)
      const isBroken = receipts.length < lines.length
      if (isBroken || wanted.length < receipts.length) return { receipts: wanted, more: false }
      if (length >= size) return { receipts: wanted, more: true }
    }
  } finally {
    closeSync(file)
  }
}

/** The whole lines among the last `length` bytes; a line that is cut off at either end is not one. */
function linesAtEnd(file: number, size: number, length: number): string[] {
  const bytes = new Uint8Array(length)
  readSync(file, bytes, 0, length, size - length)
  const lines = new TextDecoder().decode(bytes).split('\n').slice(0, -1)
  return length < size ? lines.slice(1) : lines
}

/** The unbroken row of sealed receipts at the end of these lines. */
function sealedFrom(lines: readonly string[], key: Uint8Array): Receipt[] {
  const receipts: Receipt[] = []
  for (const line of lines.toReversed()) {
    const link = readLink(line)
    const receipt = link && link.content === link.own && macOf(key, link.own) === link.mac ? readReceipt(line) : undefined
    if (!receipt) break
    receipts.unshift(receipt)
  }
  return receipts
}

function openIfThere(path: string): number | undefined {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}
