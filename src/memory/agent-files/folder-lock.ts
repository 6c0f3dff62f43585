/** Provides a lock between processes, and within one, that a killed process releases: SQLite's own lock on an empty file. */

import { Database, SQLiteError } from 'bun:sqlite'
import type { Log } from '../../runtime/port.ts'
import type { FolderPaths } from './agent-folder.ts'
import type { Disk } from './disk.ts'
import { settle } from './replace-files.ts'

/**
 * Holds the lock until disposed. Returns undefined when another holder kept it for `waitMs`. Waiting blocks the thread, so use it only for
 * locks held briefly. Creates the file when absent and leaves it empty. @throws SQLiteError when the file cannot be created or opened
 */
export function takeLock(path: string, waitMs: number): Disposable | undefined {
  const db = new Database(path, { readwrite: true, create: true })
  try {
    db.run(`PRAGMA busy_timeout = ${Math.trunc(waitMs)}`)
    // The database is never written; without this, each use would create and remove a journal file.
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

/** Runs a step while no other process of ours changes the folder, after repairing a crash. Must not be nested. */
export type WithFolderLock = <T>(step: () => T) => T

/** In milliseconds. Every step under this lock takes only milliseconds. */
const patience = 5000

/** @returns a runner that throws errno and SQLite errors, and EBUSY when another process held the lock for too long */
export function folderLock({ paths, disk, log }: { readonly paths: FolderPaths; readonly disk: Disk; readonly log: Log }): WithFolderLock {
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
