/** How far the receipts log is known to reach, kept beside the results it vouches for; and what memory asks of receipts. */

import type { Risk, ToolOutcome } from '../runtime/event.ts'
import type { Store } from './store.ts'

/** `count` receipts of log `logId` in `size` bytes, the last with hash `head`; `mac` seals the four. */
export type Checkpoint = {
  readonly logId: string
  readonly count: number
  readonly head: string
  readonly mac: string
  readonly size: number
}

/** What memory knows of one attempt. `at` in milliseconds since 1970; the hashes are SHA-256 in hex of canonical JSON. */
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
  /** What confined the call's child processes. */
  readonly sandbox?: 'bubblewrap' | 'landlock' | 'none'
}

/** A receipt that the log holds; `seq` is its number in the chain. */
export type WrittenReceipt = Omit<ReceiptDraft, 'at'> & { readonly id: string; readonly seq: number }

export type ReceiptTrouble = { readonly code: string; readonly message: string }

export type Appended =
  | {
      readonly ok: true
      /** One id a draft, in order. */
      readonly receiptIds: readonly string[]
      readonly checkpoint: Checkpoint | undefined
      /** Receipts found beyond the checkpoint: written before a crash, valid, now counted. */
      readonly adopted: number
      /** Bytes of an unfinished last line that were cut off. */
      readonly tornBytes: number
    }
  | { readonly ok: false; readonly failure: ReceiptTrouble }

/** Receipts of one transaction: numbered as they are added, on disk together when `write` returns. */
export type Ledger = {
  /** Receipts found beyond the checkpoint; the ledger begins with a receipt that says so. */
  readonly adopted: number
  readonly tornBytes: number
  /** @returns the id that the receipt of this draft will have */
  add(draft: ReceiptDraft): string
  count(): number
  /** Forgets those after the first `count`: what they vouch for was taken back. */
  cut(count: number): void
  /** Adds a receipt that accounts for those before it in this ledger: they belong to no run any more. */
  disown(): void
  write(): Appended
  close(): void
}

/** Settles what a crash left, then waits for receipts. It must not throw for trouble with the disk or the log. */
export type OpenLedger = (
  checkpoint: Checkpoint | undefined,
  logId: string,
) => { readonly ok: true; readonly ledger: Ledger } | { readonly ok: false; readonly failure: ReceiptTrouble }

export type CheckpointTable = {
  get(): Checkpoint | undefined
  put(checkpoint: Checkpoint): void
  /** Which log this database began, or will begin: another one is not its own. */
  ownLog(): string
  /** From now on this log is its own, as far as the checkpoint says. */
  adopt(checkpoint: Checkpoint): void
  /** How many receipts there were before each clear left one: they may belong to no run. */
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
