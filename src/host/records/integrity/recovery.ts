/** Opens the receipts log for writing, and recovers the record after a crash. */

import type { ReceiptPort, RecordWriter } from '../../../memory/record-writer.ts'
import { type Recovery, recoverRuns } from '../../../memory/recovery/interrupted-runs.ts'
import type { FateOf } from '../../../memory/recovery/pending-changes.ts'
import type { ReceiptPaths } from '../../../receipts/contract.ts'
import { createLedgers } from '../../../receipts/ledger.ts'
import { latestReceipts } from '../../../receipts/list-receipts.ts'
import type { Log } from '../../../runtime/port.ts'

export function receiptLog(paths: ReceiptPaths): Pick<ReceiptPort, 'begin' | 'after'> {
  return { begin: createLedgers({ paths }), after: (count) => latestReceipts(paths, count) }
}

/** Repairs what a crash left behind. @throws RecordFailure */
export function recover(log: Log, record: RecordWriter, fateOf: FateOf | undefined): Recovery {
  const recovery = recoverRuns(record, fateOf)
  const { interrupted, closedRuns, adopted, tornBytes } = recovery
  if (interrupted.length + closedRuns.length + adopted + tornBytes > 0)
    log('warn', 'recovered after a crash', { interrupted: interrupted.length, closedRuns: closedRuns.length, adopted, tornBytes })
  return recovery
}
