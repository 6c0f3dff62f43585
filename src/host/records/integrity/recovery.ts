/** Creates the record writer and recovers the record after a crash; a problem becomes a FailureError with a sentence and the right code. */

import { createApprovalRequests } from '../../../memory/approval-requests.ts'
import type { FateOf, Recovery } from '../../../memory/journal/interrupted-runs.ts'
import type { Memory } from '../../../memory/memory.ts'
import { createRecordWriter, RecordFailure, type RecordWriter, type RecordWriterOptions } from '../../../memory/record-writer.ts'
import type { ReceiptPaths } from '../../../receipts/draft.ts'
import { createSealer, type Seal, sealsBy } from '../../../receipts/key.ts'
import { createLedgers } from '../../../receipts/ledger.ts'
import { latestReceipts } from '../../../receipts/list-receipts.ts'
import { isConsistent } from '../../../receipts/settle-crash.ts'
import type { Questions, Redact } from '../../../runtime/port.ts'
import type { Setup } from '../../api.ts'
import { FailureError } from '../../failure.ts'

/** The log is where the configuration puts it; head and key are beside it, unless that folder is our home. */
export function receiptPaths({ config, paths }: Pick<Setup, 'config' | 'paths'>): ReceiptPaths {
  return { log: config.receipts.path, head: paths.receiptsHead, key: paths.receiptKey }
}

function receiptsAt(paths: ReceiptPaths): Pick<RecordWriterOptions, 'receipts'> {
  return {
    receipts: {
      begin: createLedgers({ paths }),
      after: (count) => latestReceipts(paths, count),
      isConsistent: (known) => isConsistent(paths, known),
      seal: createSealer(paths),
    },
  }
}

/** Returns the seal for checking ended runs; undefined when receipts are off, because the key may then be missing on purpose. */
export function sealsOf(setup: Pick<Setup, 'config' | 'paths'>): Seal | undefined {
  return setup.config.receipts.enabled ? sealsBy(receiptPaths(setup).key) : undefined
}

/** Returns the recorded answers to approval questions. */
export function answersIn({ approvals }: Memory): Questions['answered'] {
  return createApprovalRequests(approvals, (text) => text).answered
}

export function createRecord(setup: Pick<Setup, 'config' | 'paths' | 'log'> & { readonly redact: Redact }, memory: Memory): RecordWriter {
  const { config, log, redact } = setup
  return createRecordWriter({
    memory,
    log,
    now: Date.now,
    redact,
    ...(config.receipts.enabled ? receiptsAt(receiptPaths(setup)) : {}),
  })
}

/** Repairs what a crash left behind. @throws FailureError `integrity` when the receipts were altered. */
export function recoverRecord({ log }: Pick<Setup, 'log'>, record: RecordWriter, fateOf?: FateOf): Recovery {
  const recovery = inRecordWords(() => record.recover(fateOf))
  const { interrupted, closedRuns, adopted, tornBytes } = recovery
  if (interrupted.length + closedRuns.length + adopted + tornBytes > 0)
    log('warn', 'recovered after a crash', { interrupted: interrupted.length, closedRuns: closedRuns.length, adopted, tornBytes })
  return recovery
}

/** @throws FailureError in place of a RecordFailure: `integrity` when stored data was altered */
export function inRecordWords<T>(step: () => T): T {
  try {
    return step()
  } catch (error) {
    if (!(error instanceof RecordFailure)) throw error
    throw new FailureError(error.integrity ? 'integrity' : 'error', error.message)
  }
}
