/** What goes in and out of the log's writer. */

import type { Anchor } from './form/anchor.ts'
import type { ReceiptRisk, ReceiptSandbox, ReceiptStatus } from './form/receipt.ts'
import type { ReceiptFailure } from './receipt-failure.ts'

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

export type AppendReceipts = (drafts: readonly ReceiptDraft[], checkpoint: Checkpoint | undefined, logId?: string) => Appended

/**
 * Receipts of one transaction: numbered and chained as they are added, all of one time, on disk together when `write` returns. When some were
 * adopted, the first says so; it is counted, and never cut.
 */
export type Ledger = {
  readonly adopted: number
  readonly tornBytes: number
  /** @returns the id that the receipt of this draft will have */
  add(draft: ReceiptDraft): string
  /** How many were added. */
  count(): number
  /** Forgets those after the first `count`: what they vouch for was taken back. */
  cut(count: number): void
  /** Adds one that accounts for those before it in this ledger: they belong to no run any more. */
  disown(): void
  write(): Appended
  close(): void
}

export type OpenedLedger = { readonly ok: true; readonly ledger: Ledger } | { readonly ok: false; readonly failure: ReceiptFailure }

/** Opens the log to append to it; settles what a crash left first. `logId`: of the log that this database began or would begin. */
export type OpenLedger = (checkpoint: Checkpoint | undefined, logId?: string) => OpenedLedger
