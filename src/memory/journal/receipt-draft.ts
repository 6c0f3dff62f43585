/** What goes into a receipt, computed alike when it is written and when it is checked. */

import { isObject } from '../../kit/json.ts'
import type { ToolOutcome } from '../../runtime/event.ts'
import type { ReceiptDraft, WrittenReceipt } from '../checkpoint.ts'
import { hashJson } from './json-hash.ts'

/** What the model wrote that was no JSON object is hashed as it stands. */
export function argsHashOf(call: { readonly input: unknown; readonly malformed?: unknown }): string {
  return hashJson(call.malformed === undefined ? call.input : call.malformed)
}

/** Of the outcome without its receipt, which does not exist yet. */
export function resultHashOf({ receipt: _, ...outcome }: { readonly [key: string]: unknown }): string {
  return hashJson(outcome)
}

/**
 * The outcome of a call whose receipt is all that a crash left. Its words are fixed: a journal that says anything else about the call has to
 * answer to the receipt for it.
 */
export function lostOutcome({
  id,
  status,
  resultHash,
  sandbox,
}: Pick<WrittenReceipt, 'id' | 'status' | 'resultHash' | 'sandbox'>): ToolOutcome {
  const said = status === 'allowed' ? { output: lost } : { output: '', error: lost }
  return { status, ...said, receipt: id, metadata: { resultHash, ...sandboxOf(sandbox) } }
}

const lost = 'interrupted: the call ended, but what it returned was lost with the process'

/** Of an outcome as the journal tells it; of a lost one, the hash in its receipt. */
export function toldResultHash(told: { readonly [key: string]: unknown }): string {
  const hash = isObject(told.metadata) ? told.metadata.resultHash : undefined
  const { status } = told
  if (typeof hash !== 'string' || (status !== 'allowed' && status !== 'denied' && status !== 'failed')) return resultHashOf(told)
  const sandbox = isObject(told.metadata) ? sandboxOf(told.metadata.sandbox) : {}
  const isLost = resultHashOf(told) === resultHashOf(lostOutcome({ id: '', status, resultHash: hash, ...sandbox }))
  return isLost ? hash : resultHashOf(told)
}

/** The half of a draft that the outcome decides. */
export function outcomeDraft(outcome: ToolOutcome): Pick<ReceiptDraft, 'resultHash' | 'status' | 'error' | 'sandbox'> {
  const { status, error, metadata } = outcome
  return { resultHash: resultHashOf(outcome), status, ...(error ? { error } : {}), ...sandboxOf(metadata?.sandbox) }
}

/** What the tool said of its children, if it started any. */
export function sandboxOf(told: unknown): Pick<ReceiptDraft, 'sandbox'> {
  return told === 'bubblewrap' || told === 'landlock' || told === 'none' ? { sandbox: told } : {}
}
