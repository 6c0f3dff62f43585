/** Opens one SQLite file safely, migrates it to the newest schema, and writes to it only under `BEGIN IMMEDIATE`. */

import { type Changes, Database } from 'bun:sqlite'
import { atEnd } from '../kit/errors.ts'
import type { Log } from '../runtime/port.ts'
import { createLockWait, type LockWait } from './commit-queue.ts'
import { prepareFile, watchFile } from './database-file.ts'
import { migrations } from './migrations.ts'
import { isLocked, type StorageFailure, storageFailure } from './storage-failure.ts'

/** How long to wait for other processes that write. */
export type WaitLength = 'long' | 'briefly'

export type Store = {
  readonly path: string
  /** A prepared statement, cached until the store closes. */
  readonly sql: Database['query']
  /** Runs a statement that returns no rows. */
  run(sql: string, ...values: (string | number | null | Uint8Array)[]): Changes
  /**
   * Runs `body` in one transaction, or in the current one if there is one. Throws what `body` or SQLite throws, after a rollback. Waits
   * while other processes write; `briefly`: at most a tenth of a second, then it throws SQLITE_BUSY.
   */
  write<T>(body: () => T, waiting?: WaitLength): T
  /**
   * Works like a brief `write`, for data that can be rebuilt: on disk with the next transaction, not on return. Not within another
   * transaction.
   */
  writeLater<T>(body: () => T): T
  /** Serves callers that wait for other processes themselves. */
  lockWait(): LockWait
  /** Within a transaction: undoes `body` if it throws, and the transaction can continue. */
  separate<T>(body: () => T): T
  /** Runs several statements without parameters, outside any of our transactions. */
  script(text: string): void
  close(): void
}

export type StoreOptions = {
  readonly path: string
  readonly log: Log
  /** How many ms a writer waits for a process that holds the lock and commits nothing; 5,000 by default. */
  readonly busyTimeoutMs?: number
  /** Called in the transaction that brings a database of schema `from` up to date. */
  readonly migrated?: ((store: Store, from: number) => void) | undefined
}

export type OpenedStore = { readonly ok: true; readonly store: Store } | { readonly ok: false; readonly failure: StorageFailure }

/** Creates the folder (0700) and the file (0600) when absent. Never checks integrity, which takes long. Throws only bugs. */
export function openStore({ path, log, busyTimeoutMs = 5000, migrated }: StoreOptions): OpenedStore {
  try {
    prepareFile(path, log)
    return prepareDatabase(path, busyTimeoutMs, migrated)
  } catch (error) {
    const failure = storageFailure(path, error)
    if (!failure) throw error
    return { ok: false, failure }
  }
}

function prepareDatabase(path: string, busyTimeoutMs: number, migrated: StoreOptions['migrated']): OpenedStore {
  // The default is twenty; preparing a statement costs more than running it.
  Database.MAX_QUERY_CACHE_SIZE = 100
  const db = new Database(path, { readwrite: true, create: false, strict: true })
  try {
    db.run(`PRAGMA busy_timeout = ${Math.trunc(busyTimeoutMs)}; PRAGMA synchronous = FULL`)
    const store = storeOver(db, path, busyTimeoutMs)
    // Several processes may open a new file at once; SQLite does not wait for this lock.
    waitUntilFree(() => void db.run('PRAGMA journal_mode = WAL'), store.lockWait, 'long')
    const found = migrate(store, migrated)
    if (found <= migrations.length) return { ok: true, store }
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

/** @returns the schema number afterwards. It is read again under the lock, because another process may migrate too. */
function migrate(store: Store, migrated: StoreOptions['migrated']): number {
  const version = () => store.sql<{ user_version: number }, []>('PRAGMA user_version').get()?.user_version ?? 0
  if (version() >= migrations.length) return version()
  return store.write(() => {
    const from = version()
    if (from >= migrations.length) return from
    for (const step of migrations.slice(from)) store.script(step)
    migrated?.(store, from)
    store.script(`PRAGMA user_version = ${migrations.length}`)
    return version()
  })
}

function storeOver(db: Database, path: string, busyTimeoutMs: number): Store {
  const version = () => db.query<{ data_version: number }, []>('PRAGMA data_version').get()?.data_version ?? 0
  const lockWait = () => createLockWait({ version, stuckMs: busyTimeoutMs, now: () => performance.now(), random: Math.random })
  const assertInPlace = watchFile(path)
  const begin = () => {
    assertInPlace()
    beginAtOnce(db, busyTimeoutMs)
  }
  return {
    path,
    sql: db.query.bind(db),
    run: (sql, ...values) => db.query(sql).run(...values),
    script: (text) => void db.run(text),
    write: (body, waiting = 'long') => transact(db, () => waitUntilFree(begin, lockWait, waiting), body),
    writeLater: (body) => unsynced(db, () => transact(db, () => waitUntilFree(begin, lockWait, 'briefly'), body)),
    lockWait,
    separate: (body) => undone(db, body),
    // Also finalises the cached statements: an open one would keep the file open and its WAL unmerged.
    close: () => db.close(),
  }
}

/** The longest time to block the event loop, in which waiting costs a hundred times as much as sleeping. */
const briefMs = 100

/** SQLite's own busy timeout applies only to statements outside of transactions. */
function beginAtOnce(db: Database, busyTimeoutMs: number): void {
  using _end = atEnd(() => db.run(`PRAGMA busy_timeout = ${Math.trunc(busyTimeoutMs)}`))
  db.run('PRAGMA busy_timeout = 0; BEGIN IMMEDIATE')
}

function waitUntilFree(attempt: () => void, lockWait: () => LockWait, waiting: WaitLength): void {
  const until = performance.now() + (waiting === 'briefly' ? briefMs : Number.POSITIVE_INFINITY)
  for (let wait: LockWait | undefined; ; ) {
    try {
      attempt()
      return
    } catch (error) {
      if (!isLocked(error)) throw error
      wait ??= lockWait()
      const ms = wait()
      if (ms === undefined || performance.now() >= until) throw error
      Bun.sleepSync(ms)
    }
  }
}

function transact<T>(db: Database, begin: () => void, body: () => T): T {
  if (db.inTransaction) return body()
  begin()
  try {
    const result = body()
    db.run('COMMIT')
    return result
  } catch (error) {
    // A full disk or an I/O error may already have rolled back.
    if (db.inTransaction) db.run('ROLLBACK')
    throw error
  }
}

/** NORMAL, not OFF, so that checkpoints of the WAL stay safe. */
function unsynced<T>(db: Database, body: () => T): T {
  db.run('PRAGMA synchronous = NORMAL')
  using _end = atEnd(() => db.run('PRAGMA synchronous = FULL'))
  return body()
}

function undone<T>(db: Database, body: () => T): T {
  db.run('SAVEPOINT step')
  try {
    const result = body()
    db.run('RELEASE step')
    return result
  } catch (error) {
    if (db.inTransaction) db.run('ROLLBACK TO step; RELEASE step')
    throw error
  }
}
