/** Memory and receipts, opened for a command; trouble with either ends the command with a sentence and the right code. */

import { createApprovalRequests } from '../../memory/approval-requests.ts'
import type { Memory } from '../../memory/memory.ts'
import { createRecordWriter, RecordFailure, type RecordWriter, type RecordWriterOptions } from '../../memory/record-writer.ts'
import { latestReceipts } from '../../receipts/latest.ts'
import { createLedgers, type ReceiptPaths } from '../../receipts/ledger.ts'
import { isAtRest } from '../../receipts/resting.ts'
import { createSealer, type Seal, sealsBy } from '../../receipts/seal.ts'
import type { Questions, Redact } from '../../runtime/port.ts'
import type { Setup } from '../api.ts'
import { FailureError } from '../failure.ts'

/** The log where the configuration puts it, its head and key beside it unless that is our home. */
export function receiptPaths({ config, paths }: Pick<Setup, 'config' | 'paths'>): ReceiptPaths {
  return { log: config.receipts.path, head: paths.receiptsHead, key: paths.receiptKey }
}

function receiptsAt(paths: ReceiptPaths): Pick<RecordWriterOptions, 'receipts'> {
  return {
    receipts: {
      begin: createLedgers({ paths }),
      after: (count) => latestReceipts(paths, count),
      isAtRest: (known) => isAtRest(paths, known),
      seal: createSealer(paths),
    },
  }
}

/** For checking the seals of ended runs; undefined when receipts are off, for then the key may be gone on purpose. */
export function sealsOf(setup: Pick<Setup, 'config' | 'paths'>): Seal | undefined {
  return setup.config.receipts.enabled ? sealsBy(receiptPaths(setup).key) : undefined
}

/** What the record says of questions that were put to somebody. */
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

/** Puts right what a crash left behind. @throws FailureError integrity when the receipts were altered. */
export function recoverRecord({ log }: Pick<Setup, 'log'>, record: RecordWriter): void {
  const { interrupted, closedRuns, adopted, tornBytes } = inRecordWords(record.recover)
  if (interrupted.length + closedRuns.length + adopted + tornBytes > 0)
    log('warn', 'recovered after a crash', { interrupted: interrupted.length, closedRuns: closedRuns.length, adopted, tornBytes })
}

/** @throws FailureError in place of a RecordFailure: integrity when what is kept was altered */
export function inRecordWords<T>(step: () => T): T {
  try {
    return step()
  } catch (error) {
    if (!(error instanceof RecordFailure)) throw error
    throw new FailureError(error.integrity ? 'integrity' : 'error', error.message)
  }
}
