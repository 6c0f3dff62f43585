/** Lets the operator accept a record with gaps: it writes down what is missing, so that work can continue. */

import type { Memory } from '../../../memory/memory.ts'
import type { RecordWriter } from '../../../memory/record-writer.ts'
import { sealAnchor } from '../../../receipts/form/anchor.ts'
import { readKey } from '../../../receipts/key.ts'
import type { Span } from '../../../receipts/left-over.ts'
import { type Verification, verifyReceipts } from '../../../receipts/verify/verify-chain.ts'
import { acceptance } from '../../../receipts/without-run.ts'
import type { Setup } from '../../api.ts'
import { FailureError } from '../../failure.ts'
import { brokenChain, checkChain } from './receipt-check.ts'
import { receiptPaths } from './recovery.ts'

/** `database`: why the database does not fit the log. Without a note nothing is accepted; the result then shows what could be. */
export type Accepted = {
  readonly database?: string
  readonly problems: readonly string[]
  readonly receipts: readonly Span[]
  /** The receipt of the acceptance. */
  readonly receipt?: string
}

export type Acceptance = {
  readonly setup: Pick<Setup, 'config' | 'paths'>
  readonly memory: Memory
  readonly record: RecordWriter
  readonly by: string
  /** The operator's reason. */
  readonly note: string | undefined
}

/**
 * Accepts all problems or none, under the lock between processes. @throws FailureError `integrity` when the log itself is broken: that
 * cannot be accepted.
 */
export function acceptRecord(wanted: Acceptance): Accepted {
  const { record, memory, note } = wanted
  if (note !== undefined) return record.transaction(() => accept(wanted, note))
  // A dry run: the transaction is rolled back.
  const seen: { found?: Accepted } = {}
  try {
    memory.transaction(() => {
      seen.found = fitted(wanted)
      throw new TakenBack()
    })
  } catch (error) {
    if (!(error instanceof TakenBack)) throw error
  }
  return seen.found ?? { problems: [], receipts: [] }
}

class TakenBack extends Error {}

function accept(wanted: Acceptance, note: string): Accepted {
  const found = fitted(wanted)
  const { database, problems, receipts } = found
  if (database === undefined && problems.length + receipts.length === 0) return found
  const input = { by: wanted.by, note, ...(database === undefined ? {} : { database }), problems, receipts }
  const receipt = wanted.record.recordAction({ conversationId: 'none', tool: acceptance, input, risk: 'high' })
  return { ...found, ...(receipt === undefined ? {} : { receipt }) }
}

/** Adopts the log as the database's own, then checks what is still wrong. */
function fitted({ setup, memory }: Acceptance): Accepted {
  const { found, ...before } = checkChain({ setup, memory, deep: true })
  const database = found.problems.find(({ kind }) => kind === 'database' || kind === 'seal' || kind === 'log')
  if (found.ok) return before.acceptable
  if (database) memory.checkpoint.adopt(endOf(setup))
  const { found: after, acceptable } = checkChain({ setup, memory, deep: true })
  const [broken] = after.problems
  if (broken)
    throw new FailureError('integrity', `${brokenChain(broken)}; this cannot be accepted: restore log, head file and key from a backup`)
  return { ...acceptable, ...(database ? { database: database.message } : {}) }
}

/** Returns what the log itself records as its end. @throws FailureError `integrity` when the log is broken */
function endOf(setup: Acceptance['setup']) {
  const { log, head, key: keyPath } = receiptPaths(setup)
  const key = readKey(keyPath)
  if (!key.ok) throw new FailureError('integrity', key.failure.message)
  const { logId, count, head: last, size }: Verification = verifyReceipts({ path: log, headPath: head, key, checkpoint: undefined })
  if (logId === undefined) throw new FailureError('integrity', `the receipts log "${log}" is empty or missing; restore it from a backup`)
  return { ...sealAnchor(key.key, { logId, count, head: last }), size }
}
