/** Combines the tables of schedules: definitions, runs, the lease, and the addresses of channels. */

import type { Store } from '../store.ts'
import { type AddressesTable, createAddressesTable } from './addresses-table.ts'
import { createFiredTable, type FiredTable, type Note } from './fired-table.ts'
import { createLease, type Lease } from './lease.ts'
import { createScheduleTable, type ScheduleTable } from './schedule-table.ts'

export type ScheduleStore = {
  readonly schedules: ScheduleTable
  readonly fired: FiredTable
  readonly lease: Lease
  readonly addresses: AddressesTable
  readonly transaction: Store['write']
  /** Returns the exit code of the last command of a run. */
  exitCodeOf(runId: string): number | undefined
}

type Code = { readonly code: number | null }

/** `note` journals that a run began or ended, for whoever follows the events of the home. */
export function createScheduleStore(store: Store, note: Note): ScheduleStore {
  return {
    schedules: createScheduleTable(store),
    fired: createFiredTable(store, note),
    lease: createLease(store),
    addresses: createAddressesTable(store),
    transaction: store.write,
    exitCodeOf(runId) {
      const find = store.sql<Code, [string]>(
        `SELECT body ->> '$.outcome.metadata.exitCode' AS code FROM journal WHERE run_id = ? AND type IN ('tool.changed', 'tool.done')
         ORDER BY seq DESC LIMIT 1`,
      )
      return find.get(runId)?.code ?? undefined
    },
  }
}
