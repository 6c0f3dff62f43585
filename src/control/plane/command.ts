/** Holds what every command of the plane works with: its context, the numbers of new records, and readers of columns. */

import type { PlaneOptions } from '../contract/plane.ts'
import type { Command, Dialect, Param, Row } from '../contract/store-port.ts'

/** All daemons share the clock `now`. */
export type PlaneContext = Pick<PlaneOptions, 'store' | 'now' | 'random' | 'randomBytes'> & {
  readonly dialect: Dialect
  readonly options: PlaneOptions
}

export function createContext(options: PlaneOptions): PlaneContext {
  const { store, random, randomBytes } = options
  const now = () => options.now() + (store.skewMs?.() ?? 0)
  return { store, dialect: store.dialect, now, random, randomBytes, options }
}

/** Each is a row in the table `sequences`. */
type Sequence =
  | 'tasks'
  | 'runs'
  | 'approvals'
  | 'reservations'
  | 'ledger'
  | 'activity'
  | 'events'
  | 'schedules'
  | 'sessions'
  | 'hostd_calls'
  | 'agents'

/** Returns the next number of this kind of record, from 1. Its row stays locked until the commit, so numbers are in commit order. */
export function* nextId(name: Sequence): Command<number> {
  return yield* queryNumber(
    'INSERT INTO sequences (name, value) VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET value = sequences.value + 1 RETURNING value',
    [name],
  )
}

/** Reserves the numbers that the next statement reads as `lastNumber`; no other statement comes between the two, so no command waits for the number. */
export function* reserveNumber(name: Sequence, count = 1): Command<void> {
  yield [
    'INSERT INTO sequences (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = sequences.value + excluded.value',
    [name, count],
  ]
}

/** Each expression reads the last number that was reserved. */
export const lastNumber = {
  tasks: "(SELECT value FROM sequences WHERE name = 'tasks')",
  runs: "(SELECT value FROM sequences WHERE name = 'runs')",
  events: "(SELECT value FROM sequences WHERE name = 'events')",
}

/** Returns TASK-001, RUN-001 or APPR-001: at least three digits. */
export function idOf(kind: 'TASK' | 'RUN' | 'APPR', number: number): string {
  return `${kind}-${String(number).padStart(3, '0')}`
}

export function idOrNull(kind: 'TASK' | 'RUN' | 'APPR', number: number | null): string | null {
  return number === null ? null : idOf(kind, number)
}

/** Returns the number of TASK-001. Routes have checked the form; 0 belongs to no record. */
export function numberOf(id: string): number {
  const number = Number(id.slice(id.lastIndexOf('-') + 1))
  return Number.isSafeInteger(number) ? number : 0
}

/** Returns the first row, if there is one. */
export function* queryOne(sql: string, params: readonly Param[] = []): Command<Row | undefined> {
  const rows = yield [sql, params]
  return rows[0]
}

/** Returns the column `value` of the first row as a number, for example a count; 0 without a row. */
export function* queryNumber(sql: string, params: readonly Param[] = []): Command<number> {
  const row = yield* queryOne(sql, params)
  return Number(row?.value ?? 0)
}

export function text(row: Row, column: string): string {
  return String(row[column] ?? '')
}

export function textOrNull(row: Row, column: string): string | null {
  const value = row[column]
  return value === null || value === undefined ? null : String(value)
}

export function int(row: Row, column: string): number {
  return Number(row[column] ?? 0)
}

export function intOrNull(row: Row, column: string): number | null {
  const value = row[column]
  return value === null || value === undefined ? null : Number(value)
}

export function flag(row: Row, column: string): boolean {
  return int(row, column) === 1
}

/** Returns milliseconds as ISO 8601 in UTC. */
export function time(row: Row, column: string): string {
  return new Date(int(row, column)).toISOString()
}

export function timeOrNull(row: Row, column: string): string | null {
  const ms = intOrNull(row, column)
  return ms === null ? null : new Date(ms).toISOString()
}

/** Parses a JSON object that the plane stored itself; null for NULL. */
export function objectOrNull(row: Row, column: string): Record<string, unknown> | null {
  const value = row[column]
  return typeof value === 'string' ? JSON.parse(value) : null
}

export function object(row: Row, column: string): Record<string, unknown> {
  return objectOrNull(row, column) ?? {}
}

export function strings(row: Row, column: string): string[] {
  return JSON.parse(text(row, column) || '[]')
}

/** Returns a WHERE clause of the conditions that have a value, with their parameters. */
export function whereOf(conditions: readonly (readonly [condition: string, value: Param | undefined])[]): [where: string, params: Param[]] {
  const present = conditions.flatMap(([condition, value]) => (value === undefined ? [] : [{ condition, value }]))
  const where = present.length === 0 ? '' : `WHERE ${present.map(({ condition }) => condition).join(' AND ')}`
  return [where, present.map(({ value }) => value)]
}

/** Leaves out the columns without a value; those with null stay. */
export function defined(columns: Readonly<Record<string, Param | undefined>>): Record<string, Param> {
  return Object.fromEntries(Object.entries(columns).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const])))
}

/** Returns `?, ?, ?` for a list of values. */
export function marks(values: readonly unknown[]): string {
  return values.map(() => '?').join(', ')
}
