/** Stores how far the receipts log is known to reach, beside the results it proves, and defines what memory requires of receipts. */

import type { Risk, ToolOutcome } from '../runtime/event.ts'
import type { Store } from './store.ts'

/** `count` receipts of log `logId` occupy `size` bytes; the last has hash `head`; `mac` authenticates the four. */
export type Checkpoint = {
  readonly logId: string
  readonly count: number
  readonly head: string
  readonly mac: string
  readonly size: number
}

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
  readonly sandbox?: 'bubblewrap' | 'landlock' | 'none'
  /** The fate of the call's changes to the workspace; see `changesOf`. */
  readonly changes?: string
}

/** A receipt in the log; `seq` is its number in the chain. */
export type WrittenReceipt = Omit<ReceiptDraft, 'at'> & { readonly id: string; readonly seq: number }

export type ReceiptTrouble = { readonly code: string; readonly message: string }

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
  | { readonly ok: false; readonly failure: ReceiptTrouble }

/** Collects the receipts of one transaction: `add` numbers them, and `write` puts all of them on disk. */
export type Ledger = {
  /** Receipts found beyond the checkpoint; the ledger then starts with a receipt that records them. */
  readonly adopted: number
  readonly tornBytes: number
  /** @returns the id that the receipt of this draft will have */
  add(draft: ReceiptDraft): string
  count(): number
  /** Drops the receipts after the first `count`, because their results were rolled back. */
  cut(count: number): void
  /** Adds a receipt that accounts for the earlier ones in this ledger, which no longer belong to a run. */
  disown(): void
  /** Call it before an act. `byWriting`: a write failed before, so only a write proves that there is room again. */
  prove(byWriting: boolean): { readonly ok: true } | { readonly ok: false; readonly failure: ReceiptTrouble }
  write(): AppendResult
  close(): void
}

/** Repairs what a crash interrupted, then accepts receipts. Must not throw for errors of the disk or the log. */
export type OpenLedger = (
  checkpoint: Checkpoint | undefined,
  logId: string,
) => { readonly ok: true; readonly ledger: Ledger } | { readonly ok: false; readonly failure: ReceiptTrouble }

export type CheckpointTable = {
  get(): Checkpoint | undefined
  put(checkpoint: Checkpoint): void
  /** Returns the log that this database began, or will begin; any other log is foreign. */
  ownLog(): string
  /** Makes this log its own, up to the checkpoint. */
  adopt(checkpoint: Checkpoint): void
  /** Returns how many receipts the log had before clears began to leave a receipt; these receipts may belong to no run. */
  older(): number
}

export function createCheckpointTable(store: Store): CheckpointTable {
  function put({ logId, count, head, mac, size }: Checkpoint): void {
    const put = store.sql<never, [string, number, string, string, number]>('INSERT OR REPLACE INTO checkpoint VALUES (1, ?, ?, ?, ?, ?)')
    store.write(() => put.run(logId, count, head, mac, size))
  }

  return {
    get: () => store.sql<Checkpoint, []>('SELECT log_id AS logId, count, head, mac, size FROM checkpoint').get() ?? undefined,
    put,
    ownLog: () => store.sql<{ logId: string }, []>('SELECT log_id AS logId FROM own_log').get()?.logId ?? '',
    adopt(checkpoint) {
      store.write(() => {
        store.sql<never, [string]>('INSERT OR REPLACE INTO own_log VALUES (1, ?, 0)').run(checkpoint.logId)
        put(checkpoint)
      })
    },
    older: () => store.sql<{ older: number }, []>('SELECT older FROM own_log').get()?.older ?? 0,
  }
}
