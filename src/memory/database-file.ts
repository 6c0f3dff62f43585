/** Prepares the database file before SQLite opens it: creates it if needed, and lets only its owner read it. */

import { accessSync, chmodSync, closeSync, constants, existsSync, lstatSync, mkdirSync, openSync, readlinkSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { unlessCode } from '../kit/errors.ts'
import type { Log } from '../runtime/port.ts'

/**
 * Creates the folder (0700) and the file (0600) when absent, and takes other users' permissions away from an existing file. SQLite gives
 * its -wal and -shm files the mode of the main file. @throws errno errors
 *
 * An existing file is never opened here: closing it would drop every POSIX lock of this process on it, those of SQLite too, and the next
 * program to close the database would delete the WAL.
 */
export function prepareFile(path: string, log: Log): void {
  if (!existsSync(dirname(path))) mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const found = statSync(path, { throwIfNoEntry: false })
  if (!found) {
    createFile(path)
    return
  }
  if (!found.isFile())
    throw Object.assign(new Error('it is not a regular file'), { code: found.isDirectory() ? 'EISDIR' : 'EINVAL', errno: 0 })
  // SQLite opens a file that it may not write for reading alone, and fails only at the first write.
  accessSync(path, constants.R_OK | constants.W_OK)
  const mode = found.mode & 0o777
  if ((mode & 0o077) === 0) return
  chmodSync(path, 0o600)
  log('warn', 'database permissions narrowed', { path, from: mode.toString(8), to: '600' })
}

/** Returns a check that the open file still has its name. @throws an errno error ESTALE */
export function watchFile(path: string): () => void {
  const identity = () => {
    const { dev, ino } = statSync(path, { throwIfNoEntry: false }) ?? {}
    return `${dev}:${ino}`
  }
  const opened = identity()
  return () => {
    if (identity() !== opened) throw Object.assign(new Error('it was removed, moved or replaced'), { code: 'ESTALE', errno: 0 })
  }
}

/** O_EXCL: the file did not exist before, so nobody else has it open when it is closed here. */
function createFile(path: string): void {
  unlessCode(['EEXIST'], () => closeSync(openSync(linkTarget(path), constants.O_RDWR | constants.O_CREAT | constants.O_EXCL, 0o600)))
}

/** O_EXCL follows no link to a file that does not exist yet. */
function linkTarget(path: string): string {
  const found = lstatSync(path, { throwIfNoEntry: false })
  return found?.isSymbolicLink() ? linkTarget(resolve(dirname(path), readlinkSync(path))) : path
}

/** Returns the database and the files that SQLite keeps beside it; to open and close one drops locks too. */
export function databaseFiles(path: string): string[] {
  return ['', '-wal', '-shm', '-journal'].map((suffix) => `${path}${suffix}`)
}
