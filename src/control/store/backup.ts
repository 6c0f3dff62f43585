/** Backs the control plane up into one SQLite file, and restores it from there. */

import { PlaneRefusal } from '../contract/plane-refusal.ts'
import type { Store } from '../contract/store-port.ts'
import { copyStore } from './copy-store.ts'
import { openSqlite, type SqliteOptions } from './open-sqlite.ts'
import { digests, type TableDigest } from './table-digests.ts'

export type BackupOptions = {
  readonly store: Store
  /** A file that does not exist yet. Only its owner may read it: it holds the texts of all tasks, and digests of keys. */
  readonly path: string
  readonly log: SqliteOptions['log']
}

/**
 * A running daemon may write meanwhile: SQLite copies one state of the database. From PostgreSQL the tables are copied one after another, so
 * stop its daemons first, or use pg_dump. @returns what the backup holds
 */
export async function backup({ store, path, log }: BackupOptions): Promise<readonly TableDigest[]> {
  await store.vacuumInto?.(path)
  const copy = await openSqlite({ path, log })
  try {
    return store.vacuumInto ? await digests(copy) : await copyStore({ from: store, to: copy })
  } finally {
    await copy.close()
  }
}

export type RestoreOptions = {
  /** The file that `backup` wrote. */
  readonly path: string
  /** An empty store of either engine. */
  readonly store: Store
  readonly log: SqliteOptions['log']
}

/** @returns what both hold. @throws PlaneRefusal conflict when the store is not empty, not_found without the file */
export async function restore({ path, store, log }: RestoreOptions): Promise<readonly TableDigest[]> {
  if (!(await Bun.file(path).exists())) throw new PlaneRefusal('not_found', `there is no backup "${path}"`)
  const copy = await openSqlite({ path, log })
  try {
    return await copyStore({ from: copy, to: store })
  } finally {
    await copy.close()
  }
}
