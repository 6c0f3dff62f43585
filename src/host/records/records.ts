/** Assembles the functions over the records of a home: for its host. */

import type { HostRecords } from '../contract/records-api.ts'
import { approvalRecords } from './approvals.ts'
import { changeRecords } from './changes.ts'
import { conversationRecords } from './conversations.ts'
import { pinRecords } from './pins.ts'
import { receiptRecords } from './receipts.ts'
import type { RecordsBase } from './records-base.ts'
import { runRecords } from './runs.ts'
import { stopRecords } from './stop.ts'
import { toolFacts } from './tools.ts'

export function createRecords(base: RecordsBase): HostRecords {
  const { setup, memory } = base
  return {
    conversations: conversationRecords(base),
    runs: runRecords(base),
    approvals: approvalRecords(base),
    receipts: receiptRecords(base),
    memory: { search: ({ limit, ...asked }) => memory.search({ ...asked, limit: Math.max(1, Math.min(50, limit ?? 10)) }) },
    pins: pinRecords(setup),
    changes: changeRecords(base),
    stop: stopRecords({ path: setup.paths.estop, log: setup.log, redact: setup.redactor.text }),
    tools: () => toolFacts(setup),
  }
}
