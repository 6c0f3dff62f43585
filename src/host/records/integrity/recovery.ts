/** Opens the receipts log for writing, and recovers the record after a crash. */

import { type Recovery, recoverRuns } from '../../../memory/journal/interrupted-runs.ts'
import type { FateOf } from '../../../memory/journal/pending-changes.ts'
import type { ReceiptPort, RecordWriter } from '../../../memory/record-writer.ts'
import type { ReceiptPaths } from '../../../receipts/draft.ts'
import { createLedgers } from '../../../receipts/ledger.ts'
import { latestReceipts } from '../../../receipts/list-receipts.ts'
import type { Setup } from '../../api.ts'
import { inRecordWords } from './create-record.ts'

export function receiptLog(paths: ReceiptPaths): Pick<ReceiptPort, 'begin' | 'after'> {
  return { begin: createLedgers({ paths }), after: (count) => latestReceipts(paths, count) }
}

/** Repairs what a crash left behind. @throws FailureError `integrity` when the receipts were altered. */
export async function recoverRecord({ log }: Pick<Setup, 'log'>, record: RecordWriter, fateOf?: FateOf): Promise<Recovery> {
  await record.prepare()
  const recovery = inRecordWords(() => recoverRuns(record, fateOf))
  const { interrupted, closedRuns, adopted, tornBytes } = recovery
  if (interrupted.length + closedRuns.length + adopted + tornBytes > 0)
    log('warn', 'recovered after a crash', { interrupted: interrupted.length, closedRuns: closedRuns.length, adopted, tornBytes })
  return recovery
}
