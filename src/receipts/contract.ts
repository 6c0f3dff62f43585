/** Defines the input and output of the code that appends to the receipts log, and the attempts that are compared with it. */

import type { Risk, ToolOutcome } from '../runtime/event.ts'
import type { SandboxName } from '../sandbox/contract.ts'
import type { Anchor } from './form/anchor.ts'
import type { ReceiptFailure } from './receipt-failure.ts'

/** `keyless`: a log that begins now is chained and not sealed. */
export type ReceiptPaths = { readonly log: string; readonly head: string; readonly key: string; readonly keyless?: boolean }

/** The facts about one attempt that its receipt needs. `at` in milliseconds since 1970; the hashes are SHA-256 in hex of canonical JSON. */
export type ReceiptDraft = {
  readonly at: number
  readonly conversationId: string
  readonly tool: string
  readonly argsHash: string
  readonly resultHash: string
  readonly status: ToolOutcome['status']
  readonly risk: Risk
  readonly approval?: string
  readonly error?: string
  /** The sandbox that confined the call's child processes. */
  readonly sandbox?: SandboxName
  /** The fate of the call's changes to the workspace; see Receipt. */
  readonly changes?: string
}

/** A receipt in the log, with the field names of a draft; `seq` is its number in the chain. */
export type WrittenReceipt = Omit<ReceiptDraft, 'at'> & { readonly id: string; readonly seq: number }

/** The receipts that are known to be in the log occupy `size` bytes. */
export type Checkpoint = Anchor & { readonly size: number }

export type AppendResult =
  | {
      readonly ok: true
      /** One id per draft, in order. */
      readonly receiptIds: readonly string[]
      readonly checkpoint: Checkpoint | undefined
      /** Receipts found beyond the checkpoint: written before a crash, valid, and now counted. */
      readonly adopted: number
      /** Bytes of an unfinished last line that were cut off. */
      readonly tornBytes: number
    }
  | { readonly ok: false; readonly failure: ReceiptFailure }

export type AppendReceipts = (drafts: readonly ReceiptDraft[], checkpoint: Checkpoint | undefined, logId?: string) => AppendResult

/**
 * Collects the receipts of one transaction: `add` numbers and chains them, all have one timestamp, and all are on disk when `write`
 * returns. If receipts were adopted, the first receipt records that; `count` includes it, and `cut` never removes it.
 */
export type Ledger = {
  readonly adopted: number
  readonly tornBytes: number
  /** @returns the id that the receipt of this draft will have */
  add(draft: ReceiptDraft): string
  /** Returns how many receipts were added. */
  count(): number
  /** Drops the receipts after the first `count`, because their results were rolled back. */
  cut(count: number): void
  /** Adds a receipt that accounts for the earlier ones in this ledger, which no longer belong to a run. */
  disown(): void
  /**
   * Call it before an act: proves that its receipt can be written. `byWriting`: writes to the disk and takes that back, as for an empty
   * log, instead of only asking how much room there is.
   */
  prove(byWriting: boolean): { readonly ok: true } | { readonly ok: false; readonly failure: ReceiptFailure }
  write(): AppendResult
  close(): void
}

type OpenedLedger = { readonly ok: true; readonly ledger: Ledger } | { readonly ok: false; readonly failure: ReceiptFailure }

/**
 * Opens the log for appending, after repairing what a crash left. `logId`: the log that this database began or would begin. Must not throw
 * for errors of the disk or the log.
 */
export type OpenLedger = (checkpoint: Checkpoint | undefined, logId?: string) => OpenedLedger

/**
 * One attempt from the journal, with hashes computed from its current content. `pending`: a living process works on it; `unfinished`: its
 * process died.
 */
export type JournalledAttempt = {
  readonly runId: string
  readonly callId: string
  readonly conversationId: string
  readonly tool: string
  readonly argsHash: string
  readonly status?: string
  readonly resultHash?: string
  /** The sandbox of its child processes, according to the journal. */
  readonly sandbox?: string
  /** The fate of its changes, according to the journal. */
  readonly changes?: string
  /** Why the journal contradicts itself about the call, if it does. */
  readonly contradiction?: string
  readonly receiptId?: string
  readonly pending: boolean
  readonly unfinished: boolean
}

/** Returns a MAC of this text, made with the secret key; undefined when there is no key. */
export type Seal = (text: string) => string | undefined
