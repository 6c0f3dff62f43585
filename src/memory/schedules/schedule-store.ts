/** Combines the tables of schedules: definitions, runs, the lease, and the addresses of channels. */

import type { Clock } from '../../runtime/port.ts'
import { noteInHome } from '../journal/feed/home-notes.ts'
import { isAlive } from '../journal/process-owner.ts'
import type { Store } from '../store.ts'
import { createFiredTable, type FiredTable } from './fired-table.ts'
import type { ScheduleDefinition, ScheduleRow, ScheduleState } from './schedule-row.ts'

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

type AddressesTable = {
  keep(channel: string, conversationId: string, address: string): void
  of(channel: string, conversationId: string): string | undefined
}

/** Stores where each conversation of a channel was heard last, so that a channel can send there after a restart. */
function createAddressesTable({ sql, writeLater }: Store): AddressesTable {
  const find = sql<{ address: string }, [string, string]>('SELECT address FROM channel_addresses WHERE channel = ? AND conversation_id = ?')
  const of: AddressesTable['of'] = (channel, conversationId) => find.get(channel, conversationId)?.address
  return {
    of,
    keep(channel, conversationId, address) {
      if (of(channel, conversationId) === address) return
      const put = sql<never, [string, string, string]>('INSERT OR REPLACE INTO channel_addresses VALUES (?, ?, ?)')
      writeLater(() => void put.run(channel, conversationId, address))
    },
  }
}

type Lease = {
  /** Takes or renews the lease. @returns whether this process holds it now */
  hold(owner: string, now: number): boolean
  /** Returns the living process that holds it. */
  holder(now: number): string | undefined
  release(owner: string): void
}

/** A process that is stopped but alive loses the lease after this time. */
const leaseMs = 120_000

type Held = { readonly owner: string; readonly until: number }

/** Decides which of several processes of a home starts what is due: one holds the lease, and another takes it when that one is gone. */
function createLease({ sql, write }: Store): Lease {
  const find = sql<Held, []>('SELECT owner, until FROM schedule_lease')

  /** A lease that ends further ahead than any lease can was written before the clock was set back. */
  function isFree({ owner, until }: Held, now: number): boolean {
    return until < now || until > now + leaseMs || !isAlive(owner)
  }

  return {
    hold(owner, now) {
      const known = find.get()
      if (known && known.owner !== owner && !isFree(known, now)) return false
      if (known?.owner === owner && !isFree(known, now) && known.until - now > leaseMs / 2) return true
      return write(() => {
        const held = find.get()
        if (held && held.owner !== owner && !isFree(held, now)) return false
        sql<never, [string, number]>('INSERT OR REPLACE INTO schedule_lease VALUES (1, ?, ?)').run(owner, now + leaseMs)
        return true
      })
    },
    holder(now) {
      const held = find.get()
      return held && !isFree(held, now) ? held.owner : undefined
    },
    release: (owner) => write(() => void sql<never, [string]>('DELETE FROM schedule_lease WHERE owner = ?').run(owner)),
  }
}

type ScheduleTable = {
  list(): ScheduleRow[]
  named(name: string): ScheduleRow | undefined
  /** @returns false when the name is taken */
  add(row: ScheduleRow): boolean
  change(id: string, definition: ScheduleDefinition, checked: number): void
  setState(id: string, state: ScheduleState, about: { readonly why?: string; readonly checked: number }): void
  setChecked(id: string, checked: number): void
  setFailures(id: string, failures: number): void
  /** Removes the schedule and its history. */
  remove(id: string): void
  /** A number that changes whenever another process has written to the database. */
  version(): number
}

const scheduleColumns = `id, name, kind, spec, zone, anchor, message, workspace, agent, autonomy, conversation, channel, recipient,
  check_command AS checkCommand, missed, overlap, pause_after AS pauseAfter, state, why, checked, failures, created`

/** Stores schedules: what a person decided, and which of them are active. */
function createScheduleTable(store: Store): ScheduleTable {
  const { sql, write } = store
  return {
    list: () => sql<ScheduleRow, []>(`SELECT ${scheduleColumns} FROM schedules ORDER BY created, name`).all(),
    named(name) {
      return (
        sql<ScheduleRow, [string, string]>(`SELECT ${scheduleColumns} FROM schedules WHERE name = ? OR id = ?`).get(name, name) ?? undefined
      )
    },
    add(row) {
      const put = sql<never, Values>(`INSERT INTO schedules VALUES (${Array(22).fill('?').join(', ')}) ON CONFLICT (name) DO NOTHING`)
      return write(() => put.run(...valuesOf(row)).changes > 0)
    },
    change(id, definition, checked) {
      write(() => {
        const row = sql<ScheduleRow, [string]>(`SELECT ${scheduleColumns} FROM schedules WHERE id = ?`).get(id)
        if (!row) return
        const put = sql<never, Values>(`INSERT OR REPLACE INTO schedules VALUES (${Array(22).fill('?').join(', ')})`)
        put.run(...valuesOf({ ...row, ...definition, checked }))
      })
    },
    setState(id, state, { why = '', checked }) {
      const put = sql<never, [string, string, number, string]>(
        'UPDATE schedules SET state = ?, why = ?, checked = ?, failures = 0 WHERE id = ?',
      )
      write(() => void put.run(state, why, checked, id))
    },
    setChecked: (id, checked) =>
      write(() => void sql<never, [number, string]>('UPDATE schedules SET checked = ? WHERE id = ?').run(checked, id)),
    setFailures: (id, failures) =>
      write(() => void sql<never, [number, string]>('UPDATE schedules SET failures = ? WHERE id = ?').run(failures, id)),
    remove(id) {
      write(() => {
        sql<never, [string]>('DELETE FROM schedule_runs WHERE schedule_id = ?').run(id)
        sql<never, [string]>('DELETE FROM schedules WHERE id = ?').run(id)
      })
    },
    version: () => sql<{ data_version: number }, []>('PRAGMA data_version').get()?.data_version ?? 0,
  }
}

type Values = (string | number | null)[]

function valuesOf(row: ScheduleRow): Values {
  const { id, name, kind, spec, zone, anchor, message, workspace, agent, autonomy, conversation, channel, recipient } = row
  const { checkCommand, missed, overlap, pauseAfter, state, why, checked, failures, created } = row
  return [
    ...[id, name, kind, spec, zone, anchor, message, workspace, agent, autonomy, conversation, channel, recipient],
    ...[checkCommand, missed, overlap, pauseAfter, state, why, checked, failures, created],
  ]
}
