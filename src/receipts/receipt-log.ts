/** The log's writer for receipts that are known at once: settles what a crash left, then appends, and says so only when it is on disk. */

import { statSync } from 'node:fs'
import type { Appended, AppendReceipts } from './draft.ts'
import { createLedgers, fault, guarded, type ReceiptLogOptions } from './ledger.ts'

/** Under the lock between processes, like a ledger; with no drafts it only settles, and makes no log where there is none. Only bugs throw. */
export function createReceiptLog(options: ReceiptLogOptions): AppendReceipts {
  const { paths } = options
  const open = createLedgers(options)
  return (drafts, checkpoint, logId) => {
    if (drafts.length === 0 && isEmpty(paths.log)) return guarded(paths, () => fault(paths, checkpoint) ?? nothing)
    const opened = open(checkpoint, logId)
    if (!opened.ok) return opened
    const { ledger } = opened
    try {
      for (const draft of drafts) ledger.add(draft)
      return ledger.write()
    } finally {
      ledger.close()
    }
  }
}

const nothing: Appended = { ok: true, receiptIds: [], checkpoint: undefined, adopted: 0, tornBytes: 0 }

function isEmpty(path: string): boolean {
  return (statSync(path, { throwIfNoEntry: false })?.size ?? 0) === 0
}
