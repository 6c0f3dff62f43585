/** Reads a whole table page by page in the order of its key, which is the same on both engines. */

import type { Command, Param, Row, Store } from '../contract/store-port.ts'
import type { Table } from './tables.ts'

const rowsAtOnce = 500

export async function* pagesOf(store: Store, table: Table): AsyncGenerator<readonly Row[]> {
  for (let last: Row | undefined; ; ) {
    const rows = await store.read(() => page(store, table, last))
    if (rows.length > 0) yield rows
    if (rows.length < rowsAtOnce) return
    last = rows.at(-1)
  }
}

function* page(store: Store, { name, columns, key }: Table, last: Row | undefined): Command<readonly Row[]> {
  // Bytewise, as SQLite orders texts.
  const collate = store.dialect.engine === 'postgres' ? ' COLLATE "C"' : ''
  const keys = key.map(({ column, isText }) => `${column}${isText ? collate : ''}`)
  const after = last ? ` WHERE (${keys.join(', ')}) > (${keys.map(() => '?').join(', ')})` : ''
  const params: Param[] = last ? key.map(({ column }) => last[column] ?? null) : []
  return yield [`SELECT ${columns.join(', ')} FROM ${name}${after} ORDER BY ${keys.join(', ')} LIMIT ${rowsAtOnce}`, params]
}
