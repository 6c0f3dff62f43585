/** Lists the tables with their columns and keys, read from the statements that create and extend them. */

import type { Command, Param, Row, Store } from '../contract/store-port.ts'
import { migrations } from './schema.ts'

export type Table = {
  readonly name: string
  readonly columns: readonly string[]
  /** The primary key, in order. */
  readonly key: readonly { readonly column: string; readonly isText: boolean }[]
}

export function tables(): readonly Table[] {
  const added = addedColumns()
  return migrations.flat().flatMap((statement) => {
    const found = /^CREATE TABLE (\w+) \(([\s\S]*)\)$/.exec(statement.trim())
    if (!found?.[1] || !found[2]) return []
    const table = tableOf(found[1], found[2])
    return [{ ...table, columns: [...table.columns, ...(added.get(table.name) ?? [])] }]
  })
}

/** By the name of the table; later versions add them at its end. */
function addedColumns(): ReadonlyMap<string, readonly string[]> {
  const found = migrations.flat().flatMap((statement) => {
    const [, table, column] = /^ALTER TABLE (\w+) ADD COLUMN (\w+) /.exec(statement) ?? []
    return table && column ? [{ table, column }] : []
  })
  return new Map([...Map.groupBy(found, ({ table }) => table)].map(([table, all]) => [table, all.map(({ column }) => column)]))
}

function tableOf(name: string, body: string): Table {
  const [, listed] = /PRIMARY KEY \(([^)]+)\)/.exec(body) ?? []
  const definitions = body
    .replace(/,?\s*PRIMARY KEY \([^)]+\)/, '')
    .split(',')
    .map((definition) => definition.trim())
  const types = new Map(definitions.map((definition) => splitOnce(definition)))
  const single = definitions.find((definition) => definition.includes('PRIMARY KEY'))
  const keys = listed?.split(',').map((column) => column.trim()) ?? (single ? [splitOnce(single)[0]] : [])
  return {
    name,
    columns: [...types.keys()],
    key: keys.map((column) => ({ column, isText: types.get(column)?.startsWith('TEXT') === true })),
  }
}

function splitOnce(definition: string): readonly [string, string] {
  const at = definition.indexOf(' ')
  return [definition.slice(0, at), definition.slice(at + 1)]
}

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
