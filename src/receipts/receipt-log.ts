/** The log's writer for receipts that are known at once: settles what a crash left, then appends, and says so only when it is on disk. */

import { closeSync, fstatSync } from 'node:fs'
import type { Appended, AppendReceipts, Checkpoint } from './draft.ts'
import { writeHead } from './head.ts'
import { begin, createLedgers, fault, guarded, openLog, type ReceiptLogOptions } from './ledger.ts'

/** Under the lock between processes, like a ledger; with no drafts it only settles. Only bugs throw. */
export function createReceiptLog(options: ReceiptLogOptions): AppendReceipts {
  const open = createLedgers(options)
  return (drafts, checkpoint) => {
    if (drafts.length === 0) return guarded(options.paths, () => settleOnly(options, checkpoint))
    const opened = open(checkpoint)
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

/** Nothing to append: only the head file may have to follow what was adopted. */
function settleOnly({ paths }: ReceiptLogOptions, checkpoint: Checkpoint | undefined): Appended {
  const file = openLog(paths.log)
  if (file === undefined) return fault(paths, checkpoint) ?? nothing
  try {
    if (fstatSync(file).size === 0) return fault(paths, checkpoint) ?? nothing
    const begun = begin(file, paths, checkpoint)
    if (!begun.ok) return begun
    const { adopted, tornBytes } = begun
    if (adopted > 0 || tornBytes > 0) writeHead(paths.head, begun.checkpoint)
    return { ok: true, receiptIds: [], checkpoint: begun.checkpoint, adopted, tornBytes }
  } finally {
    closeSync(file)
  }
}
