/** Computes the content of a receipt in the same way for writing and for checking. */

import { canonical, changeTexts, isObject } from '../../kit/json.ts'
import { sha256 } from '../../kit/sha256.ts'
import type { ReceiptDraft, WrittenReceipt } from '../../receipts/contract.ts'
import type { ToolOutcome } from '../../runtime/event.ts'
import { changesOf } from '../../runtime/outcome.ts'

/** Hashes model output that was not a JSON object unchanged. */
export function argsHashOf(call: { readonly input: unknown; readonly malformed?: unknown }): string {
  return hashJson(call.malformed === undefined ? call.input : call.malformed)
}

/** Hashes the outcome without its receipt, which does not exist yet. */
export function resultHashOf({ receipt: _, ...outcome }: { readonly [key: string]: unknown }): string {
  return hashJson(outcome)
}

/**
 * Returns the outcome of a call of which a crash left only the receipt. Its texts are fixed, so that a journal with any other text fails
 * the check against the receipt.
 */
export function lostOutcome({ id, status, resultHash, ...seen }: Lost): ToolOutcome {
  const texts = status === 'allowed' ? { output: lost } : { output: '', error: lost }
  return { status, ...texts, receipt: id, metadata: { resultHash, ...seenIn({ ...seen }) } }
}

type Lost = Pick<WrittenReceipt, 'id' | 'status' | 'resultHash' | 'sandbox' | 'changes'>

const lost = 'interrupted: the call ended, but what it returned was lost with the process'

/** Hashes an outcome from the journal; for a lost outcome, returns the hash in its receipt. */
export function recordedResultHash(recorded: { readonly [key: string]: unknown }): string {
  const metadata = isObject(recorded.metadata) ? recorded.metadata : {}
  const { resultHash: hash } = metadata
  const { status } = recorded
  if (typeof hash !== 'string' || (status !== 'allowed' && status !== 'denied' && status !== 'failed')) return resultHashOf(recorded)
  const isLost = resultHashOf(recorded) === resultHashOf(lostOutcome({ id: '', status, resultHash: hash, ...seenIn(metadata) }))
  return isLost ? hash : resultHashOf(recorded)
}

/** Returns the part of a draft that depends on the outcome. */
export function outcomeDraft(outcome: ToolOutcome): Pick<ReceiptDraft, 'resultHash' | 'status' | 'error' | 'sandbox' | 'changes'> {
  const { status, error, metadata } = outcome
  return { resultHash: resultHashOf(outcome), status, ...(error ? { error } : {}), ...seenIn(metadata) }
}

/** Returns the sandbox that the tool reported for its child processes, if it started any. */
export function sandboxOf(recorded: unknown): Pick<ReceiptDraft, 'sandbox'> {
  return recorded === 'bubblewrap' || recorded === 'landlock' || recorded === 'none' ? { sandbox: recorded } : {}
}

/** Returns what the runtime added to an outcome for its receipt. */
export function seenIn(metadata: { readonly [key: string]: unknown } | undefined): Pick<ReceiptDraft, 'sandbox' | 'changes'> {
  const changes = changesOf({ changes: metadata?.changes })
  return { ...sandboxOf(metadata?.sandbox), ...(changes === undefined ? {} : { changes }) }
}

/**
 * Returns the SHA-256 in hex of the canonical JSON of any value. Values without a canonical form (lone surrogates, NaN) are first replaced,
 * always in the same way.
 */
export function hashJson(value: unknown): string {
  return sha256(canonicalAnyway(value))
}

function canonicalAnyway(value: unknown): string {
  try {
    return canonical(value)
  } catch {
    return canonical(changeTexts(JSON.parse(JSON.stringify(value) ?? 'null'), (text) => text.toWellFormed()))
  }
}
