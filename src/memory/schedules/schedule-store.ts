/** Combines the tables of schedules: definitions, runs, the lease, and the addresses of channels. */

import type { Clock } from '../../runtime/port.ts'
import { noteInHome } from '../journal/feed/home-notes.ts'
import type { Store } from '../store.ts'
import { type AddressesTable, createAddressesTable } from './addresses-table.ts'
import { createFiredTable, type FiredTable } from './fired-table.ts'
import { createLease, type Lease } from './lease.ts'
import { createScheduleTable, type ScheduleTable } from './schedule-table.ts'

export type ScheduleStore = {
  readonly schedules: ScheduleTable
  readonly fired: FiredTable
  readonly lease: Lease
  readonly addresses: AddressesTable
  readonly transaction: Store['write']
  /** Notes in the journal which run a schedule began, for those who follow the home. */
  noteFired(fired: { readonly schedule: string; readonly runId: string; readonly conversationId?: string }): void
  /** Returns the exit code of the last command of a run. */
  exitCodeOf(runId: string): number | undefined
}

type Code = { readonly code: number | null }

export function createScheduleStore(store: Store, now: Clock): ScheduleStore {
  return {
    schedules: createScheduleTable(store),
    fired: createFiredTable(store, (type, body) => noteInHome(store, now, type, body)),
    lease: createLease(store),
    addresses: createAddressesTable(store),
    transaction: store.write,
    noteFired: (fired) => void noteInHome(store, now, 'schedule.fired', fired),
    exitCodeOf(runId) {
      const find = store.sql<Code, [string]>(
        `SELECT body ->> '$.outcome.metadata.exitCode' AS code FROM journal WHERE run_id = ? AND type IN ('tool.changed', 'tool.done')
         ORDER BY seq DESC LIMIT 1`,
      )
      return find.get(runId)?.code ?? undefined
    },
  }
}
