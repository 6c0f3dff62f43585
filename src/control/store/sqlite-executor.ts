/** Runs the statements of commands on one SQLite connection: each text is prepared once, and a group is one transaction. */

import type { Database, Statement } from 'bun:sqlite'
import type { Param, Row } from '../contract/store-port.ts'

export type SqliteExecutor = {
  rows(sql: string, params: readonly Param[]): readonly Row[]
  /** BEGIN IMMEDIATE to COMMIT; throws after a rollback. */
  transaction<T>(body: () => T): T
  /** A savepoint within a transaction. */
  separate<T>(body: () => T): T
  /** All reads of `body` see one state. */
  snapshot<T>(body: () => T): T
  /** A number that changes when another process has committed. */
  changesOfOthers(): number
  close(): void
}

type Prepared = Statement<Row, Param[]>

/** Filters of lists make many texts; those after the first few hundred are prepared anew each time. */
const mostPrepared = 400

export function createSqliteExecutor(db: Database): SqliteExecutor {
  const prepared = new Map<string, Prepared>()

  function prepare(sql: string): Prepared {
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
 * SQLite plans a statement anew for each value that is bound behind `=`, because 0 and 1 are thought to be frequent; planning a join takes
 * five times as long as running it. A sign in front of the value changes nothing else.
 */
function plannedOnce(sql: string): string {
  return sql.replaceAll('= ?', '= +?')
}
