/** Copies a whole control plane from one database into another, empty one, and verifies that both hold the same. */

import { atAsyncEnd } from '../../kit/errors.ts'
import { PlaneRefusal } from '../contract/plane-refusal.ts'
import type { Command, Param, Row, Store } from '../contract/store-port.ts'
import { openSqlite, type SqliteOptions } from './open-sqlite.ts'
import { migrations } from './schema.ts'

/** For a backup `path` is a file that does not exist yet: only its owner may read it, because it holds the texts of all tasks, and digests of keys. */
type BackupOptions = Pick<SqliteOptions, 'path' | 'log'> & { readonly store: Store }

/**
 * Writes a backup. A running daemon may write meanwhile: SQLite copies one state of the database. From PostgreSQL the tables are copied one
 * after another, so stop its daemons first, or use pg_dump. @returns what the backup holds
 */
export async function backup({ store, path, log }: BackupOptions): Promise<readonly TableDigest[]> {
  await store.vacuumInto?.(path)
  const copy = await openSqlite({ path, log })
  await using _end = atAsyncEnd(() => copy.close())
  return store.vacuumInto ? await digests(copy) : await copyStore({ from: store, to: copy })
}

/** Restores a backup into an empty store of either engine. @returns what both hold. @throws PlaneRefusal conflict when the store is not empty, not_found without the file */
export async function restore({ path, store, log }: BackupOptions): Promise<readonly TableDigest[]> {
  if (!(await Bun.file(path).exists())) throw new PlaneRefusal('not_found', `the backup "${path}" does not exist`)
  const copy = await openSqlite({ path, log })
  await using _end = atAsyncEnd(() => copy.close())
  return await copyStore({ from: copy, to: store })
}

type Copy = {
  readonly from: Store
  readonly to: Store
  /** Called after each table. */
  readonly copied?: (table: string, rows: number) => void
}

/** Stands in the settings of the target until the copy is verified, so that an interrupted copy can start again. */
const UNFINISHED = 'copy_unfinished'

/**
 * Copies all tables. The source must not change meanwhile: stop its daemon. @returns what both hold now @throws PlaneRefusal conflict when
 * the target is not empty, or the source changed; the next copy empties an unfinished target
 */
export async function copyStore({ from, to, copied = () => {} }: Copy): Promise<readonly TableDigest[]> {
  await to.write(() => prepareTarget())
  for (const table of tables()) copied(table.name, await copyTable(from, to, table))
  await to.write(function* () {
    yield ['DELETE FROM settings WHERE name = ?', [UNFINISHED]]
  })
  const [source, target] = [await digests(from), await digests(to)]
  const different = differences(source, target)
  if (different.length === 0) return target
  await to.write(() => markUnfinished())
  throw new PlaneRefusal(
    'conflict',
    `the copy differs from its source in ${different.join(', ')}; stop the daemon of the source and copy again`,
  )
}

function* prepareTarget(): Command<void> {
  const [unfinished] = yield ['SELECT value FROM settings WHERE name = ?', [UNFINISHED]]
  if (unfinished) for (const table of tables()) yield [`DELETE FROM ${table.name}`]
  for (const table of tables()) yield* assertEmpty(table)
  yield* markUnfinished()
}

function* assertEmpty({ name }: Table): Command<void> {
  const [row] = yield [`SELECT 1 AS found FROM ${name} LIMIT 1`]
  if (row) throw new PlaneRefusal('conflict', `the target is not empty: its table "${name}" has rows; copy into a new database`)
}

function* markUnfinished(): Command<void> {
  yield ["INSERT INTO settings (name, value) VALUES (?, '1') ON CONFLICT (name) DO UPDATE SET value = '1'", [UNFINISHED]]
}

async function copyTable(from: Store, to: Store, table: Table): Promise<number> {
  let rows = 0
  for await (const page of pagesOf(from, table)) {
    await to.write(() => insertRows(table, page))
    rows += page.length
  }
  return rows
}

/** This many rows stay within the 32,766 parameters that SQLite takes. */
const rowsPerInsert = 100

function* insertRows({ name, columns }: Table, page: readonly Row[]): Command<void> {
  const marks = `(${columns.map(() => '?').join(', ')})`
  for (let at = 0; at < page.length; at += rowsPerInsert) {
    const rows = page.slice(at, at + rowsPerInsert)
    const params = rows.flatMap((row) => columns.map((column) => row[column] ?? null))
    yield [`INSERT INTO ${name} (${columns.join(', ')}) VALUES ${rows.map(() => marks).join(', ')}`, params]
  }
}

/** `digest`: SHA-256 over the rows in the order of the key, each a line of JSON with its columns in the order of the schema. */
export type TableDigest = { readonly table: string; readonly rows: number; readonly digest: string }

export async function digests(store: Store): Promise<readonly TableDigest[]> {
  const matched: TableDigest[] = []
  for (const table of tables()) matched.push(await digestOf(store, table))
  return matched
}

async function digestOf(store: Store, table: Table): Promise<TableDigest> {
  const hash = new Bun.CryptoHasher('sha256')
  let rows = 0
  for await (const page of pagesOf(store, table)) {
    rows += page.length
    for (const row of page) hash.update(`${JSON.stringify(table.columns.map((column) => row[column] ?? null))}\n`)
  }
  return { table: table.name, rows, digest: hash.digest('hex') }
}

/** Returns the names of the tables whose rows differ, with both counts, for a message. */
function differences(one: readonly TableDigest[], other: readonly TableDigest[]): readonly string[] {
  return one.flatMap(({ table, rows, digest }) => {
    const twin = other.find((digested) => digested.table === table)
    return twin?.digest === digest ? [] : [`${table} (${rows} and ${twin?.rows ?? 0} rows)`]
  })
}

type Table = {
  readonly name: string
  readonly columns: readonly string[]
  /** The primary key, in order. */
  readonly key: readonly { readonly column: string; readonly isText: boolean }[]
}

export function tables(): readonly Table[] {
  const added = addedColumns()
  return migrations.flat().flatMap((statement) => {
    const matched = /^CREATE TABLE (\w+) \(([\s\S]*)\)$/.exec(statement.trim())
    if (!matched?.[1] || !matched[2]) return []
    const table = tableOf(matched[1], matched[2])
    return [{ ...table, columns: [...table.columns, ...(added.get(table.name) ?? [])] }]
  })
}

/** Returns the columns that later versions add at the end of a table, by its name. */
function addedColumns(): ReadonlyMap<string, readonly string[]> {
  const matched = migrations.flat().flatMap((statement) => {
    const [, table, column] = /^ALTER TABLE (\w+) ADD COLUMN (\w+) /.exec(statement) ?? []
    return table && column ? [{ table, column }] : []
  })
  return new Map([...Map.groupBy(matched, ({ table }) => table)].map(([table, all]) => [table, all.map(({ column }) => column)]))
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

const rowsPerPage = 500

async function* pagesOf(store: Store, table: Table): AsyncGenerator<readonly Row[]> {
  for (let last: Row | undefined; ; ) {
    const rows = await store.read(() => page(store, table, last))
    if (rows.length > 0) yield rows
    if (rows.length < rowsPerPage) return
    last = rows.at(-1)
  }
}

function* page(store: Store, { name, columns, key }: Table, last: Row | undefined): Command<readonly Row[]> {
  // SQLite orders texts by their bytes.
  const collate = store.dialect.engine === 'postgres' ? ' COLLATE "C"' : ''
  const keys = key.map(({ column, isText }) => `${column}${isText ? collate : ''}`)
  const after = last ? ` WHERE (${keys.join(', ')}) > (${keys.map(() => '?').join(', ')})` : ''
  const params: Param[] = last ? key.map(({ column }) => last[column] ?? null) : []
  return yield [`SELECT ${columns.join(', ')} FROM ${name}${after} ORDER BY ${keys.join(', ')} LIMIT ${rowsPerPage}`, params]
}
