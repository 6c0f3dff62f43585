/** What goes into a receipt, computed alike when it is written and when it is checked. */

import type { ToolOutcome } from '../runtime/event.ts'
import type { ReceiptDraft } from './checkpoint.ts'
import { hashJson } from './hash.ts'

/** What the model wrote that was no JSON object is hashed as it stands. */
export function argsHashOf(call: { readonly input: unknown; readonly malformed?: unknown }): string {
  return hashJson(call.malformed === undefined ? call.input : call.malformed)
}

/** Of the outcome without its receipt, which does not exist yet. */
export function resultHashOf({ receipt: _, ...outcome }: { readonly [key: string]: unknown }): string {
  return hashJson(outcome)
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
