/** Accounts for the calls that a killed hostd left: ends their processes, and writes the receipts that are missing. */

import type { Log } from '../../../runtime/port.ts'
import type { Intents } from './call-intents.ts'
import { endMarked } from './marked-processes.ts'
import type { RecordCall } from './receipt-record.ts'

type LeftOptions = {
  readonly record: RecordCall
  readonly log: Log
}

/** @throws when a receipt cannot be written: then hostd must not start */
export function settleLeft(intents: Intents, { record, log }: LeftOptions): void {
  for (const { call, op, details } of intents.left()) {
    const processes = endMarked(call)
    const error = 'stopped: hostd was killed before it recorded how the operation ended'
    record({ op, risk: 'high', outcome: 'failed', error, details: { ...details, outcome: 'failed', code: 'stopped', call, processes } })
    intents.end(call)
    log('warn', 'an operation was running when hostd was killed', { op, call, processes })
  }
}
