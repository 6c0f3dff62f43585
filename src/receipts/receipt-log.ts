/** Appends receipts that are all known at once: repairs what a crash left, appends, and returns after they are on disk. */

import { statSync } from 'node:fs'
import type { Appended, AppendReceipts } from './draft.ts'
import { createLedgers, fault, guarded, type ReceiptLogOptions } from './ledger.ts'

/** Requires the lock between processes, like a ledger. Without drafts it only repairs, and creates no log. Only bugs throw. */
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
