/** One SQLite file: opened safely, brought to the newest schema, written only under `BEGIN IMMEDIATE`. */

import { Database } from 'bun:sqlite'
import { closeSync, constants, existsSync, fchmodSync, fstatSync, mkdirSync, openSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Log } from '../runtime/port.ts'
import { type StorageFailure, storageFailure } from './failure.ts'
import { migrations } from './schema.ts'

export type Store = {
  readonly path: string
  /** A prepared statement, kept for the life of the store. */
  readonly sql: Database['query']
  /** Runs `body` in one transaction, joining the one under way if there is one. Throws what `body` or SQLite throws, rolled back. */
  write<T>(body: () => T): T
  /** Several statements without parameters, outside any transaction of ours. */
  script(text: string): void
  close(): void
  /**
   * Closes, but leaves what is in a small WAL for whoever opens the file next: it is as safe there, and merging it takes three syncs. For
   * a process that is about to end: another connection of this very process to the same file would lose its locks.
   */
  leave(): void
}

export type StoreOptions = {
  readonly path: string
  readonly log: Log
  /** How long a writer waits for another process, in milliseconds. */
  readonly busyTimeoutMs?: number
}

export type OpenedStore = { readonly ok: true; readonly store: Store } | { readonly ok: false; readonly failure: StorageFailure }

/** Creates the folder (0700) and the file (0600) when absent. Never checks integrity: opening must stay cheap. Throws only bugs. */
export function openStore({ path, log, busyTimeoutMs = 5000 }: StoreOptions): OpenedStore {
  try {
    prepareFile(path, log)
    return prepareDatabase(path, busyTimeoutMs)
  } catch (error) {
    const failure = storageFailure(path, error)
    if (!failure) throw error
    return { ok: false, failure }
  }
}

/** SQLite gives its -wal and -shm files the mode of the main file, so that is the one to get right. */
function prepareFile(path: string, log: Log): void {
  if (!existsSync(dirname(path))) mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const file = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600)
  try {
    const mode = fstatSync(file).mode & 0o777
    if ((mode & 0o077) === 0) return
    fchmodSync(file, 0o600)
    log('warn', 'database permissions narrowed', { path, from: mode.toString(8), to: '600' })
  } finally {
    closeSync(file)
  }
}

function prepareDatabase(path: string, busyTimeoutMs: number): OpenedStore {
  // Twenty by default; we have more, and preparing one costs more than running it.
  Database.MAX_QUERY_CACHE_SIZE = 100
  const db = new Database(path, { readwrite: true, create: false, strict: true })
  try {
    db.run(`PRAGMA busy_timeout = ${Math.trunc(busyTimeoutMs)}; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL`)
    const store = storeOver(db, path)
    const { found, migrated } = migrate(store)
    // What has just been made is merged, so that the file never stands there almost empty.
    if (found <= migrations.length) return { ok: true, store: migrated ? { ...store, leave: store.close } : store }
    store.close()
    const why = `schema ${found}, this version knows up to ${migrations.length}`
    return {
      ok: false,
      failure: { code: 'newer_schema', path, message: `database "${path}" was written by a newer BraidClaw (${why}); update BraidClaw` },
    }
  } catch (error) {
    db.close()
    throw error
  }
}

/** `found` is the schema number the file has afterwards. Another process may migrate at the same time: the lock decides, then we look again. */
function migrate(store: Store): { readonly found: number; readonly migrated: boolean } {
  const version = () => store.sql<{ user_version: number }, []>('PRAGMA user_version').get()?.user_version ?? 0
  const found = version()
  if (found >= migrations.length) return { found, migrated: false }
  return store.write(() => {
    for (const step of migrations.slice(version())) store.script(step)
    if (version() < migrations.length) store.script(`PRAGMA user_version = ${migrations.length}`)
    return { found: version(), migrated: true }
  })
}

function storeOver(db: Database, path: string): Store {
  return {
    path,
    sql: db.query.bind(db),
    script: (text) => void db.run(text),
    write: (body) => transact(db, body),
    // Finalises the cached statements too: an unfinalised one would keep the file open and its WAL unmerged.
    close: () => db.close(),
    leave: () => {
      if (isSmall(`${path}-wal`)) db.fileControl(NULL_IO, null)
      db.close()
    },
  }
}

/** SQLITE_FCNTL_NULL_IO: SQLite lets go of the database file, so that closing cannot take the lock that merging needs. */
const NULL_IO = 43

/** The next opener reads the whole WAL, some 2 ms for each MiB. */
const smallWal = 512 * 1024

function isSmall(wal: string): boolean {
  const found = statSync(wal, { throwIfNoEntry: false })
  return found !== undefined && found.size < smallWal
}

function transact<T>(db: Database, body: () => T): T {
  if (db.inTransaction) return body()
  db.run('BEGIN IMMEDIATE')
  try {
    const result = body()
    db.run('COMMIT')
    return result
  } catch (error) {
    // A full disk or an I/O error may have rolled back already.
    if (db.inTransaction) db.run('ROLLBACK')
    throw error
  }
}
