/** What goes in and out of the log's writer. */

import type { Anchor } from './anchor.ts'
import type { ReceiptFailure } from './failure.ts'
import type { ReceiptRisk, ReceiptSandbox, ReceiptStatus } from './receipt.ts'

/** One attempt. `at` in milliseconds since 1970. */
export type ReceiptDraft = {
  readonly at: number
  readonly conversationId: string
  readonly tool: string
  readonly argsHash: string
  readonly resultHash: string
  readonly status: ReceiptStatus
  readonly risk: ReceiptRisk
  readonly approval?: string
  readonly error?: string
  readonly sandbox?: ReceiptSandbox
}

/** A receipt that the log holds, in the words of a draft; `seq` is its number in the chain. */
export type WrittenReceipt = Omit<ReceiptDraft, 'at'> & { readonly id: string; readonly seq: number }

export type Checkpoint = Anchor & { readonly size: number }

export type Appended =
  | {
      readonly ok: true
      readonly receiptIds: readonly string[]
      readonly checkpoint: Checkpoint | undefined
      /** Receipts found beyond the checkpoint: written before a crash, valid, now counted. */
      readonly adopted: number
      /** Bytes of an unfinished last line that were cut off. */
      readonly tornBytes: number
    }
  | { readonly ok: false; readonly failure: ReceiptFailure }

export type AppendReceipts = (drafts: readonly ReceiptDraft[], checkpoint: Checkpoint | undefined) => Appended
