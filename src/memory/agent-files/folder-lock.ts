/** A lock between processes, and within one, that a killed holder cannot leave behind: SQLite's own, on an empty file. */

import { Database, SQLiteError } from 'bun:sqlite'
import type { Log } from '../../runtime/port.ts'
import type { FolderPaths } from './agent-folder.ts'
import type { Disk } from './disk.ts'
import { settle } from './replace-files.ts'

/**
 * Held until disposed of. Undefined: somebody else held it for `waitMs`; waiting blocks, so it is for locks that are held briefly. The file
 * is made when absent and stays, empty. @throws SQLiteError when it cannot be made or opened
 */
export function takeLock(path: string, waitMs: number): Disposable | undefined {
  const db = new Database(path, { readwrite: true, create: true })
  try {
    db.run(`PRAGMA busy_timeout = ${Math.trunc(waitMs)}`)
    // Nothing is ever written; without this each use would make and remove a journal file.
    db.run('PRAGMA journal_mode = MEMORY')
    db.run('BEGIN EXCLUSIVE')
    return { [Symbol.dispose]: () => release(db) }
  } catch (error) {
    db.close()
    if (error instanceof SQLiteError && error.code?.startsWith('SQLITE_BUSY')) return undefined
    throw error
  }
}

function release(db: Database): void {
  db.run('ROLLBACK')
  db.close()
}

/** Runs a step on a folder that nobody of ours changes meanwhile, and that is whole. Not to be nested. */
export type Alone = <T>(step: () => T) => T

/** Every step under this lock takes milliseconds. */
const patience = 5000

/** @returns a runner that throws errno and SQLite errors, EBUSY when somebody else has held the lock for too long */
export function alone({ paths, disk, log }: { readonly paths: FolderPaths; readonly disk: Disk; readonly log: Log }): Alone {
  return (step) => {
    using lock = takeLock(paths.lock, patience)
    if (!lock)
      throw Object.assign(new Error(`another process has held "${paths.lock}" for ${patience} ms; wait for it or end it`), {
        code: 'EBUSY',
      })
    const settled = settle(disk, paths)
    if (settled !== 'nothing') log('warn', 'recovered after a crash', { folder: paths.folder, compaction: settled })
    return step()
  }
}
