/** One SQLite file: opened safely, brought to the newest schema, written only under `BEGIN IMMEDIATE`. */

import { Database } from 'bun:sqlite'
import type { Log } from '../runtime/port.ts'
import { prepareFile } from './database-file.ts'
import { migrations } from './migrations.ts'
import { isLocked, type StorageFailure, storageFailure } from './storage-failure.ts'
import { createLockWait, type LockWait } from './write-lock.ts'

/** How to wait for other processes that write. */
export type Waiting = 'long' | 'briefly'

export type Store = {
  readonly path: string
  /** A prepared statement, kept for the life of the store. */
  readonly sql: Database['query']
  /**
   * Runs `body` in one transaction, joining the one under way if there is one. Throws what `body` or SQLite throws, rolled back. While other
   * processes write it waits; `briefly`: at most a tenth of a second, then it throws SQLITE_BUSY.
   */
  write<T>(body: () => T, waiting?: Waiting): T
  /** The same, briefly, for what could be made anew: on disk with the next transaction, not when it returns. Not within another one. */
  writeLater<T>(body: () => T): T
  /** For whoever wants to wait for other processes by itself. */
  lockWait(): LockWait
  /** Within a transaction: what `body` did is undone if it throws, and the transaction can go on. */
  separate<T>(body: () => T): T
  /** Several statements without parameters, outside any transaction of ours. */
  script(text: string): void
  close(): void
}

export type StoreOptions = {
  readonly path: string
  readonly log: Log
  /** How long a writer waits for a process that holds the database without committing anything, in milliseconds. */
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

function prepareDatabase(path: string, busyTimeoutMs: number): OpenedStore {
  // Twenty by default; we have more, and preparing one costs more than running it.
  Database.MAX_QUERY_CACHE_SIZE = 100
  const db = new Database(path, { readwrite: true, create: false, strict: true })
  try {
    db.run(`PRAGMA busy_timeout = ${Math.trunc(busyTimeoutMs)}; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL`)
    const store = storeOver(db, path, busyTimeoutMs)
    const found = migrate(store)
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

/** @returns the schema number the file has afterwards. Another process may migrate at the same time: the lock decides, then we look again. */
function migrate(store: Store): number {
  const version = () => store.sql<{ user_version: number }, []>('PRAGMA user_version').get()?.user_version ?? 0
  if (version() >= migrations.length) return version()
  return store.write(() => {
    for (const step of migrations.slice(version())) store.script(step)
    if (version() < migrations.length) store.script(`PRAGMA user_version = ${migrations.length}`)
    return version()
  })
}

function storeOver(db: Database, path: string, busyTimeoutMs: number): Store {
  const version = () => db.query<{ data_version: number }, []>('PRAGMA data_version').get()?.data_version ?? 0
  const lockWait = () => createLockWait({ version, stuckMs: busyTimeoutMs, now: () => performance.now(), random: Math.random })
  const begin = () => beginAtOnce(db, busyTimeoutMs)
  return {
    path,
    sql: db.query.bind(db),
    script: (text) => void db.run(text),
    write: (body, waiting = 'long') => transact(db, () => waitAndBegin(begin, lockWait, waiting), body),
    writeLater: (body) => unsynced(db, () => transact(db, () => waitAndBegin(begin, lockWait, 'briefly'), body)),
    lockWait,
    separate: (body) => undone(db, body),
    // Finalises the cached statements too: an unfinalised one would keep the file open and its WAL unmerged.
    close: () => db.close(),
  }
}

/** For so long the event loop may stand still. Waiting in it costs a hundred times as much as sleeping. */
const briefMs = 100

/** SQLite's own waiting is for the statements outside of transactions. */
function beginAtOnce(db: Database, busyTimeoutMs: number): void {
  try {
    db.run('PRAGMA busy_timeout = 0; BEGIN IMMEDIATE')
  } finally {
    db.run(`PRAGMA busy_timeout = ${Math.trunc(busyTimeoutMs)}`)
  }
}

function waitAndBegin(begin: () => void, lockWait: () => LockWait, waiting: Waiting): void {
  const until = performance.now() + (waiting === 'briefly' ? briefMs : Number.POSITIVE_INFINITY)
  for (let wait: LockWait | undefined; ; ) {
    try {
      begin()
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
    // A full disk or an I/O error may have rolled back already.
    if (db.inTransaction) db.run('ROLLBACK')
    throw error
  }
}

/** Not OFF: the merging of the log into the file stays safe. */
function unsynced<T>(db: Database, body: () => T): T {
  db.run('PRAGMA synchronous = NORMAL')
  try {
    return body()
  } finally {
    db.run('PRAGMA synchronous = FULL')
  }
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
