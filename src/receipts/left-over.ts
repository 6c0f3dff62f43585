/** Decides whether receipts beyond the checkpoint can come from a crash. */

import { canonical } from '../kit/json.ts'
import { sha256 } from '../kit/sha256.ts'
import { count } from '../kit/text.ts'
import type { ReceiptDraft } from './contract.ts'
import type { Receipt } from './form/receipt.ts'

/** Receipts by number, both ends included. */
export type Span = { readonly first: number; readonly last: number }

const adopted = 'receipts.adopted'
const recovery = 'recovery'

/**
 * Records that the receipts of `span`, which end directly before this one, may belong to no run: the step that wrote them was not
 * committed.
 */
export function adoptionDraft({ first, last }: Span, at: number): ReceiptDraft {
  const [argsHash, resultHash] = [hashOf({ first, last }), hashOf({ status: 'allowed', output: '' })]
  return { at, conversationId: 'none', tool: adopted, argsHash, resultHash, status: 'allowed', risk: 'low', approval: recovery }
}

export function isAdoption({ tool, approval }: Receipt): boolean {
  return tool === adopted && approval === recovery
}

/**
 * Returns the span that such a receipt accounts for. It contains only the hash of the numbers, so this tries spans of increasing length;
 * most are short.
 */
export function adoptedBy({ seq, args_hash }: Receipt): Span | undefined {
  const last = seq - 1
  for (let first = last; first > 0; first -= 1) if (hashOf({ first, last }) === args_hash) return { first, last }
}

function hashOf(value: unknown): string {
  return sha256(canonical(value))
}

export type LeftOver = {
  /** Adds the next receipt beyond the checkpoint. */
  add(receipt: Receipt): void
  /** Returns a description when there is more than a crash can leave; otherwise undefined. */
  tooMany(): string | undefined
}

/** Tells the operator what to do about a database that does not match the log. */
export const remedy =
  'Nothing is begun until memory.sqlite is restored from its newest copy, or until you accept what is there, which leaves a receipt: braidclaw receipt accept --note WHY'

/**
 * `known`: how many receipts the checkpoint counts; 0 without a checkpoint, and then `ownLog` is the log that the database would have
 * begun.
 */
export type CheckpointFacts = { readonly known: number; readonly ownLog?: string }

/**
 * Receipts reach the disk before the database commits their results, so a crash or a full disk in between leaves those of one step; the
 * next start records that first, and may be interrupted itself. No crash leaves any other receipts. Receipts of one step have one
 * timestamp, and the next step has another.
 */
export function createLeftOver({ known, ownLog }: CheckpointFacts): LeftOver {
  const seen: { first?: Receipt; last?: Receipt; steps: number; unexplained: boolean } = { steps: 0, unexplained: false }

  function add(receipt: Receipt): void {
    if (receipt.timestamp !== seen.last?.timestamp) begin(receipt)
    seen.first ??= receipt
    seen.last = receipt
  }

  function begin(receipt: Receipt): void {
    seen.steps += 1
    if (seen.steps === 1) return
    const isRecord = isAdoption(receipt) && receipt.args_hash === hashOf({ first: known + 1, last: receipt.seq - 1 })
    if (!isRecord) seen.unexplained = true
  }

  function tooMany(): string | undefined {
    const { first, last } = seen
    if (!first || !last) return undefined
    const when = first === last ? `of ${first.timestamp}` : `${first.timestamp} to ${last.timestamp}`
    if (known === 0 && ownLog !== undefined && ownLog !== first.log_id)
      return `the database is new or was replaced: it knows nothing of the ${count(last.seq, 'receipt')} in the log (${when}), nor of what was said then. ${remedy}`
    if (!seen.unexplained) return undefined
    const what = `the database knows ${count(known, 'receipt')}, the log holds ${last.seq}; numbers ${first.seq} to ${last.seq} (${when}) are more than a crash can leave`
    return `${what}: the database is an older copy, or rows of it were lost. ${remedy}`
  }

  return { add, tooMany }
}
