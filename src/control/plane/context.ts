/** What every command of the plane gets: the store, the clock, chance and the options; and the numbers of new records. */

import type { PlaneOptions } from '../contract/plane.ts'
import type { Command, Dialect, Store } from '../contract/store-port.ts'
import { first, int } from './row.ts'

export type PlaneContext = {
  readonly store: Store
  readonly dialect: Dialect
  /** The clock that all daemons share. */
  readonly now: () => number
  readonly random: () => number
  readonly randomBytes: (count: number) => Uint8Array
  readonly options: PlaneOptions
}

export function createContext(options: PlaneOptions): PlaneContext {
  const { store, random, randomBytes } = options
  const now = () => options.now() + (store.skewMs?.() ?? 0)
  return { store, dialect: store.dialect, now, random, randomBytes, options }
}

/** The names in the table `sequences`. */
export type Sequence =
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

/** The next number of this kind of record, from 1. Its row stays locked until the commit, so numbers are in commit order. */
export function* nextId(name: Sequence): Command<number> {
  return yield* nextIds(name, 1)
}

/** The first of `count` numbers in a row. */
export function* nextIds(name: Sequence, count: number): Command<number> {
  const row = yield* first(
    'INSERT INTO sequences (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = sequences.value + ? RETURNING value',
    [name, count, count],
  )
  return row ? int(row, 'value') - count + 1 : 1
}

/** For the statement before one that takes the number as `taken`: nothing comes between both, so nobody waits for the number. */
export function* take(name: Sequence, count = 1): Command<void> {
  yield [
    'INSERT INTO sequences (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = sequences.value + excluded.value',
    [name, count],
  ]
}

/** The last number that was given out, as an expression. */
export const taken = {
  tasks: "(SELECT value FROM sequences WHERE name = 'tasks')",
  runs: "(SELECT value FROM sequences WHERE name = 'runs')",
  events: "(SELECT value FROM sequences WHERE name = 'events')",
}

/** TASK-001, RUN-001, APPR-001: at least three digits. */
export function idOf(kind: 'TASK' | 'RUN' | 'APPR', number: number): string {
  return `${kind}-${String(number).padStart(3, '0')}`
}

export function idOrNull(kind: 'TASK' | 'RUN' | 'APPR', number: number | null): string | null {
  return number === null ? null : idOf(kind, number)
}

/** The number of TASK-001. Routes have checked the form; 0 is nobody's number. */
export function numberOf(id: string): number {
  const number = Number(id.slice(id.lastIndexOf('-') + 1))
  return Number.isSafeInteger(number) ? number : 0
}
