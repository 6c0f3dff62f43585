/** Writes notes that belong to no run into the journal: what an operator did in a home, in order with what its runs did. */

import type { Clock } from '../../runtime/port.ts'
import type { ChangeCount } from '../approval-table.ts'
import type { Store } from '../store.ts'
import { digestOf } from './journal-entry.ts'

/** The value of their `run_id`. There is no such run, so everything that reads the journal of runs leaves these notes out. */
export const homeRun = 'home'

/** Call it inside the transaction of the change that it reports. `body`: without secrets. @returns its number */
export function noteInHome(store: Store, now: Clock, type: string, body: unknown): number {
  const [at, text] = [now(), JSON.stringify(body)]
  const last = store
    .sql<{ digest: string | null }, [string]>('SELECT digest FROM journal WHERE run_id = ? ORDER BY seq DESC LIMIT 1')
    .get(homeRun)
  const { lastInsertRowid } = store
    .sql<never, [string, string, string, number, string, string]>(
      'INSERT INTO journal(run_id, kind, type, at, body, digest) VALUES (?, ?, ?, ?, ?, ?)',
    )
    .run(homeRun, 'note', type, at, text, digestOf(homeRun, last?.digest ?? null, { kind: 'note', type, at, body: text }))
  return Number(lastInsertRowid)
}

const changed = 'approval.changed'

/** Counts the changes of approvals in the journal. */
export function countChanges(store: Store, now: Clock): ChangeCount {
  const last = `SELECT max(json_extract(body, '$.revision')) AS revision FROM journal
    WHERE run_id = ? AND type = ? AND at >= ? AND json_extract(body, '$.id') = ?`
  return {
    add: (id, revision) => void noteInHome(store, now, changed, { id, revision }),
    last: (id, since) =>
      store.sql<{ revision: number | null }, [string, string, number, string]>(last).get(homeRun, changed, since, id)?.revision ?? 0,
  }
}
