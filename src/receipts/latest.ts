/** Reads the newest receipts of a log from its end, so that a query for the last few stays fast in a log of a million. */

import type { WrittenReceipt } from './draft.ts'
import { readLink, readReceipt } from './form/grammar.ts'
import { macOf, type Receipt } from './form/receipt.ts'
import { readKey } from './key.ts'
import { newestFirst } from './list-receipts.ts'

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
  changes,
}: Receipt): WrittenReceipt {
  const optional = {
    ...(approval === undefined ? {} : { approval }),
    ...(error === undefined ? {} : { error }),
    ...(sandbox === undefined ? {} : { sandbox }),
    ...(changes === undefined ? {} : { changes }),
  }
  return { id, seq, conversationId: conversation_id, tool, argsHash: args_hash, resultHash: result_hash, status, risk, ...optional }
}

/** Returns the receipt of this line if its hash and its mac are valid. */
export function sealedReceipt(line: string, key: Uint8Array): Receipt | undefined {
  const link = readLink(line)
  return link && link.content === link.own && macOf(key, link.own) === link.mac ? readReceipt(line) : undefined
}
