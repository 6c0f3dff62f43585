/** Opens the control plane's SQLite file: one writer process, WAL, every commit on disk before it is answered. */

import { Database, type Statement } from 'bun:sqlite'
import { statSync } from 'node:fs'
import { atEnd } from '../../kit/errors.ts'
import { createCommitQueue, createLockWait } from '../../memory/commit-queue.ts'
import { prepareFile, watchFile } from '../../memory/database-file.ts'
import { isLocked, storageFailure } from '../../memory/storage-failure.ts'
import { PlaneRefusal } from '../contract/plane-refusal.ts'
import type { Command, Dialect, Param, Row, Store } from '../contract/store-port.ts'
import { ANNOUNCE, announce, createListeners, EXCLUSIVE, exclusive } from './batch-marks.ts'
import { bringUpToDate } from './schema.ts'
import { createWriteHealth, emptyWrite } from './write-health.ts'

export type SqliteOptions = {
  /** A file, or `:memory:`. The folder (0700) and the file (0600) are created when absent. */
  readonly path: string
  readonly log: (level: 'info' | 'warn' | 'error', event: string, fields?: object) => void
  /** How long to wait, in ms, behind another process that writes without ever committing. */
  readonly stuckMs?: number
}

const dialect: Dialect = { engine: 'sqlite', forUpdate: '' }

/** @throws PlaneRefusal `unavailable` with `details.storage`: corrupt, read_only, full, unreadable, locked, replaced or newer_schema. */
export async function openSqlite({ path, log, stuckMs = 5_000 }: SqliteOptions): Promise<Store> {
  const withRefusals = refusalsFor(path)
  const db = await withRefusals(() => openFile(path, log))
  try {
    const store = storeOver(db, { withRefusals, stuckMs, log, assertInPlace: watchFile(path) })
    await store.write(() => bringUpToDate('sqlite'))
    return store
  } catch (error) {
    db.close()
    throw error
  }
}

function openFile(path: string, log: SqliteOptions['log']): Database {
  if (path !== ':memory:') prepareFile(path, (level, event, fields) => log(level === 'debug' ? 'info' : level, event, fields))
  const db = new Database(path, { readwrite: true, create: path === ':memory:', strict: true })
  try {
    db.run(
      'PRAGMA busy_timeout = 2000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -32768',
    )
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

type StoreContext = {
  readonly withRefusals: WithRefusals
  readonly stuckMs: number
  readonly log: SqliteOptions['log']
  readonly assertInPlace: () => void
}

function storeOver(db: Database, { withRefusals, stuckMs, log, assertInPlace }: StoreContext): Store {
  const executor = createSqliteExecutor(db)
  const listeners = createListeners()
  const locks = new Set<string>()
  const queue = createCommitQueue({
    transaction(body) {
      assertInPlace()
      return executor.transaction(body)
    },
    separate: executor.separate,
    // A full disk ends the transaction for all.
    endsGroup: () => !db.inTransaction,
    isLocked,
    lockWait: () => createLockWait({ version: executor.changesOfOthers, stuckMs, now: () => performance.now(), random: Math.random }),
    // Commands seldom fail, and savepoints cost a tenth of a command.
    ...{ groupSize: 128, turns: 4, together: true },
  })

  const health = createWriteHealth({ log, probe: () => emptyWrite(write) })
  async function write<T>(command: () => Command<T>): Promise<T> {
    const topics = new Set<string>()
    const run = () => {
      topics.clear()
      return follow(executor, command(), topics)
    }
    const value = await health.watched(() => withRefusals(() => queue.add(run)))
    listeners.notify(topics)
    return value
  }

  async function withLock<T>(lock: string, work: () => Promise<T>): Promise<T | undefined> {
    if (locks.has(lock)) return undefined
    locks.add(lock)
    using _end = atEnd(() => locks.delete(lock))
    return await work()
  }

  function vacuumInto(path: string): void {
    const quoted = `'${path.replaceAll("'", "''")}'`
    // SQLite fills an empty file, and leaves the mode that we gave it.
    if (statSync(path, { throwIfNoEntry: false })) throw new PlaneRefusal('conflict', `"${path}" exists already; name another file`)
    prepareFile(path, () => {})
    executor.rows(`VACUUM INTO ${quoted}`, [])
  }

  return {
    dialect,
    write,
    read: (command) => withRefusals(() => readOf(executor, command)),
    listen: listeners.listen,
    announce,
    exclusive,
    withLock,
    vacuumInto: (path) => withRefusals(() => vacuumInto(path)),
    get reachable() {
      return health.isWell()
    },
    async close() {
      health.stop()
      executor.close()
    },
  }
}

/** Runs a command without a transaction while it sends one statement, which sees one state by itself; a second statement starts it again in a transaction. */
function readOf<T>(executor: SqliteExecutor, command: () => Command<T>): T {
  const quick = command()
  const first = quick.next([])
  if (first.done) return first.value
  const second = quick.next(executor.rows(first.value[0], first.value[1] ?? []))
  return second.done ? second.value : executor.snapshot(() => follow(executor, command(), new Set()))
}

/** Runs a command to its end. SQLite answers at once, so nothing else runs in between. */
function follow<T>(executor: SqliteExecutor, command: Command<T>, topics: Set<string>): T {
  for (let step = command.next([]); ; ) {
    if (step.done) return step.value
    const [sql, params = []] = step.value
    if (sql === ANNOUNCE) topics.add(String(params[0]))
    step = command.next(sql === ANNOUNCE || sql === EXCLUSIVE ? [] : executor.rows(sql, params))
  }
}

/** Turns errors of SQLite and the file system into a refusal that names the file and what to do. */
type WithRefusals = <T>(work: () => T | Promise<T>) => Promise<T>

function refusalsFor(path: string): WithRefusals {
  return async (work) => {
    try {
      return await work()
    } catch (error) {
      const failure = error instanceof PlaneRefusal ? undefined : storageFailure(path, error)
      if (!failure) throw error
      throw new PlaneRefusal('unavailable', failure.message, { storage: failure.code, retry_after_ms: 1_000 })
    }
  }
}

type SqliteExecutor = {
  rows(sql: string, params: readonly Param[]): readonly Row[]
  /** Runs from BEGIN IMMEDIATE to COMMIT; throws after a rollback. */
  transaction<T>(body: () => T): T
  /** Runs in a savepoint within a transaction. */
  separate<T>(body: () => T): T
  /** Lets all reads of `body` see one state. */
  snapshot<T>(body: () => T): T
  /** Returns a number that changes when another process commits. */
  changesOfOthers(): number
  close(): void
}

type PreparedStatement = Statement<Row, Param[]>

/** Filters of lists make many texts; after this many each further text is prepared every time. */
const mostPrepared = 400

function createSqliteExecutor(db: Database): SqliteExecutor {
  const prepared = new Map<string, PreparedStatement>()

  function prepare(sql: string): PreparedStatement {
    const statement = db.prepare<Row, Param[]>(plannedOnce(sql))
    if (prepared.size < mostPrepared) prepared.set(sql, statement)
    return statement
  }

  const rows = (sql: string, params: readonly Param[]) => (prepared.get(sql) ?? prepare(sql)).all(...params)
  const run = (sql: string) => void rows(sql, [])

  function between<T>(begin: string, body: () => T): T {
    run(begin)
    try {
      const value = body()
      run('COMMIT')
      return value
    } catch (error) {
      // A full disk or an I/O error may already have rolled back.
      if (db.inTransaction) run('ROLLBACK')
      throw error
    }
  }

  function separate<T>(body: () => T): T {
    run('SAVEPOINT command')
    try {
      const value = body()
      run('RELEASE command')
      return value
    } catch (error) {
      if (db.inTransaction) {
        run('ROLLBACK TO command')
        run('RELEASE command')
      }
      throw error
    }
  }

  function close(): void {
    for (const statement of prepared.values()) statement.finalize()
    prepared.clear()
    db.close()
  }

  return {
    rows,
    transaction: (body) => between('BEGIN IMMEDIATE', body),
    separate,
    snapshot: (body) => between('BEGIN', body),
    changesOfOthers: () => Number(rows('PRAGMA data_version', [])[0]?.data_version ?? 0),
    close,
  }
}

/**
 * Puts a sign before each value behind `=`, which changes nothing else: SQLite plans a statement again for each such value, because it
 * assumes that 0 and 1 are frequent, and planning a join takes five times as long as running it.
 */
function plannedOnce(sql: string): string {
  return sql.replaceAll('= ?', '= +?')
}
