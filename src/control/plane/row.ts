/** Reads columns of rows by their kind, and asks for single rows, so that commands need no casts. */

import type { Command, Param, Row } from '../contract/store-port.ts'

/** The first row, if there is one. */
export function* first(sql: string, params: readonly Param[] = []): Command<Row | undefined> {
  const rows = yield [sql, params]
  return rows[0]
}

/** The column `value` of the first row as a number, for example of a count; 0 without a row. */
export function* amount(sql: string, params: readonly Param[] = []): Command<number> {
  const row = yield* first(sql, params)
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

/** Milliseconds as ISO 8601 in UTC. */
export function time(row: Row, column: string): string {
  return new Date(int(row, column)).toISOString()
}

export function timeOrNull(row: Row, column: string): string | null {
  const ms = intOrNull(row, column)
  return ms === null ? null : new Date(ms).toISOString()
}

/** A JSON object that we stored ourselves; null for NULL. */
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

/** `?, ?, ?` for a list of values. */
export function marks(values: readonly unknown[]): string {
  return values.map(() => '?').join(', ')
}
