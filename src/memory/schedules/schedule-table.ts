/** Stores schedules: what a person decided, and which of them are active. */

import type { Store } from '../store.ts'
import type { ScheduleDefinition, ScheduleRow, ScheduleState } from './schedule-row.ts'

export type ScheduleTable = {
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

export const scheduleColumns = `id, name, kind, spec, zone, anchor, message, workspace, agent, autonomy, conversation, channel, recipient,
  check_command AS checkCommand, missed, overlap, pause_after AS pauseAfter, state, why, checked, failures, created`

export function createScheduleTable(store: Store): ScheduleTable {
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
