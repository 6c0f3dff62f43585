/** Creates the record writer of a home; the receipts log itself is loaded when the first receipt is due. */

import { lazy } from '../../../kit/lazy.ts'
import type { Memory } from '../../../memory/memory.ts'
import { createRecordWriter, type ReceiptPort, RecordFailure, type RecordWriter } from '../../../memory/record-writer.ts'
import type { Recovery } from '../../../memory/recovery/interrupted-runs.ts'
import type { FateOf } from '../../../memory/recovery/pending-changes.ts'
import type { ReceiptPaths, Seal } from '../../../receipts/contract.ts'
import { createSealer, sealsBy } from '../../../receipts/key.ts'
import { isConsistent } from '../../../receipts/verify/log-end.ts'
import type { Redact } from '../../../runtime/port.ts'
import type { Setup } from '../../api.ts'
import { FailureError } from '../../failure.ts'

/** The log is where the configuration puts it; head and key are beside it, unless that folder is our home. */
export function receiptPaths({ config, paths }: Pick<Setup, 'config' | 'paths'>): ReceiptPaths {
  return { log: config.receipts.path, head: paths.receiptsHead, key: paths.receiptKey, keyless: !config.receipts.hmac }
}

/** Loaded when the first receipt is due, or when a start finds something to repair. */
const loadRecovery = () => import('./recovery.ts')

function receiptsAt(paths: ReceiptPaths): ReceiptPort {
  const log = lazy(async () => (await loadRecovery()).receiptLog(paths))

  function loaded(): Pick<ReceiptPort, 'begin' | 'after'> {
    const found = log.current()
    if (!found) throw new Error('the receipts log is used before it is prepared')
    return found
  }

  return {
    async prepare() {
      await log.get()
    },
    begin: (...known) => loaded().begin(...known),
    after: (count) => loaded().after(count),
    isConsistent: (known) => isConsistent(paths, known),
    seal: createSealer(paths),
  }
}

/** Returns the seal for checking ended runs; undefined when receipts are off, because the key may then be missing on purpose. */
export function sealsOf(setup: Pick<Setup, 'config' | 'paths'>): Seal | undefined {
  return setup.config.receipts.enabled ? sealsBy(receiptPaths(setup).key) : undefined
}

export function createRecord(setup: Pick<Setup, 'config' | 'paths' | 'log'> & { readonly redact: Redact }, memory: Memory): RecordWriter {
  const { config, log, redact } = setup
  return createRecordWriter({
    memory,
    log,
    now: Date.now,
    redact,
    ...(config.receipts.enabled ? { receipts: receiptsAt(receiptPaths(setup)) } : {}),
  })
}

/**
 * Repairs what a crash left behind, which is nothing at most starts. @returns undefined when there was nothing to repair
 * @throws FailureError `integrity` when the receipts were altered
 */
export async function recoverRecord({ log }: Pick<Setup, 'log'>, record: RecordWriter, fateOf?: FateOf): Promise<Recovery | undefined> {
  if (inRecordWords(record.isAtRest)) return undefined
  const { recover } = await loadRecovery()
  await record.prepare()
  return inRecordWords(() => recover(log, record, fateOf))
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
