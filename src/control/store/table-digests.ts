/** Computes how many rows each table has and a digest of them, to compare two databases of whichever engine. */

import type { Row, Store } from '../contract/store-port.ts'
import { pagesOf } from './read-table.ts'
import { type Table, tables } from './tables.ts'

/** `digest`: SHA-256 over the rows in the order of the key, each a line of JSON with its columns in the order of the schema. */
export type TableDigest = { readonly table: string; readonly rows: number; readonly digest: string }

export async function digests(store: Store): Promise<readonly TableDigest[]> {
  const found: TableDigest[] = []
  for (const table of tables()) found.push(await digestOf(store, table))
  return found
}

async function digestOf(store: Store, table: Table): Promise<TableDigest> {
  const hash = new Bun.CryptoHasher('sha256')
  let rows = 0
  for await (const page of pagesOf(store, table)) {
    rows += page.length
    for (const row of page) hash.update(lineOf(row, table))
  }
  return { table: table.name, rows, digest: hash.digest('hex') }
}

function lineOf(row: Row, { columns }: Table): string {
  return `${JSON.stringify(columns.map((column) => row[column] ?? null))}\n`
}

/** The tables whose rows differ: names with both counts, for a message. */
export function differences(one: readonly TableDigest[], other: readonly TableDigest[]): readonly string[] {
  return one.flatMap(({ table, rows, digest }) => {
    const twin = other.find((digested) => digested.table === table)
    return twin?.digest === digest ? [] : [`${table} (${rows} and ${twin?.rows ?? 0} rows)`]
  })
}
