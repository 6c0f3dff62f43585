/**
 * Writes the files of an agent folder: replaces them with few operations, so that tests can simulate a crash before each, and appends
 * lines.
 */

import {
  closeSync,
  constants,
  fchmodSync,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { atEnd, errnoOf, errorText, hasCode } from '../../kit/errors.ts'
import { endsTorn } from './bounded-read.ts'

/** Each may throw errno errors. */
export type Disk = {
  /** Creates the file, or empties an existing one. */
  create(path: string, mode: number): number
  /** Creates the file when absent. `append` writes at the end even if others write too; `at` writes at given positions. */
  open(path: string, how: 'append' | 'at'): number
  /** @returns how many bytes were written; fewer on a full disk */
  write(file: number, bytes: Uint8Array, position?: number): number
  truncate(file: number, size: number): void
  sync(file: number): void
  close(file: number): void
  rename(from: string, to: string): void
  /** Does nothing when the file does not exist. */
  remove(path: string): void
  syncFolder(path: string): void
}

const { O_RDONLY, O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, O_APPEND, O_NONBLOCK, O_NOCTTY, O_NOFOLLOW } = constants

export const realDisk: Disk = {
  create: (path, mode) => {
    const file = openSync(path, O_WRONLY | O_CREAT | O_TRUNC, mode)
    fchmodSync(file, mode)
    return file
  },
  open: (path, how) => openSync(path, O_WRONLY | O_CREAT | O_NONBLOCK | (how === 'append' ? O_APPEND : 0), 0o600),
  write: (file, bytes, position) => writeSync(file, bytes, 0, bytes.length, position ?? null),
  truncate: ftruncateSync,
  sync: fdatasyncSync,
  close: closeSync,
  rename: renameSync,
  remove: (path) => rmSync(path, { force: true }),
  syncFolder: (path) => {
    const folder = openSync(path, O_RDONLY)
    using _end = atEnd(() => closeSync(folder))
    fsyncSync(folder)
  },
}

/** Writes all bytes or throws. */
export function writeAll(disk: Disk, file: number, bytes: Uint8Array, position?: number): void {
  for (let done = 0; done < bytes.length; ) {
    const count = disk.write(file, bytes.subarray(done), position === undefined ? undefined : position + done)
    if (count === 0) throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })
    done += count
  }
}

/** Writes these bytes to `path`, replacing its content, and syncs; an existing file's mode stays. */
export function writeFile(disk: Disk, path: string, bytes: Uint8Array, mode = modeOf(path)): void {
  const file = disk.create(path, mode)
  using _end = atEnd(() => disk.close(file))
  writeAll(disk, file, bytes)
  disk.sync(file)
}

/**
 * Replaces a file atomically: after a crash it has its old or its new content. Call it under the folder's lock, because all writers share
 * the name `.next`.
 */
export function replaceFile(disk: Disk, path: string, bytes: Uint8Array): void {
  writeFile(disk, `${path}.next`, bytes, modeOf(path))
  disk.rename(`${path}.next`, path)
  disk.syncFolder(dirname(path))
}

export function modeOf(path: string): number {
  const found = statSync(path, { throwIfNoEntry: false })
  return found ? found.mode & 0o777 : 0o600
}

/** Returns the message of a disk error; undefined for a bug, which the caller must rethrow. */
export function diskErrorMessage(error: unknown): string | undefined {
  return /^(E[A-Z]+|SQLITE_[A-Z_]+)$/.test(errnoOf(error) ?? '') ? errorText(error) : undefined
}

/** Runs a step and returns its disk errors as values. */
export function catchDiskError<T>(step: () => T): T | { readonly ok: false; readonly message: string } {
  try {
    return step()
  } catch (error) {
    const message = diskErrorMessage(error)
    if (message === undefined) throw error
    return { ok: false, message }
  }
}

const toAppend = O_RDWR | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW

/**
 * Appends lines in one write, so that lines of other processes never mix with them. `text` ends in a newline. Creates the file (0600) and
 * its folder (0700) when absent. Starts a new line after a line that a crash cut short. Does not sync, because the file only mirrors the
 * journal. @throws errno errors, also for a symbolic link, and when the disk accepted only a part
 */
export function appendText(path: string, text: string): void {
  const file = openMade(path, toAppend)
  using _end = atEnd(() => closeSync(file))
  const found = fstatSync(file)
  if (!found.isFile()) throw trouble('EINVAL', path, 'is not a regular file')
  const bytes = new TextEncoder().encode(`${endsTorn(file, found.size) ? '\n' : ''}${text}`)
  const written = writeSync(file, bytes)
  if (written < bytes.length) throw trouble('ENOSPC', path, `only ${written} of ${bytes.length} bytes were written`)
}

/** Creates the file (0600) and its folder (0700) when absent. @throws errno errors */
export function openMade(path: string, flags: number): number {
  try {
    return openSync(path, flags, 0o600)
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    return openSync(path, flags, 0o600)
  }
}

function trouble(code: string, path: string, what: string): Error {
  return Object.assign(new Error(`${code}: "${path}": ${what}`), { code, path, errno: 0, syscall: 'write' })
}

/** Returns `2026-02-12T10:00:00Z`, without milliseconds, because `jq fromdate` requires that. */
export function timestamp(at: number): string {
  return `${new Date(at).toISOString().slice(0, 19)}Z`
}

/**
 * Returns 1, 2, 3 …, without repeats even under concurrent calls: each caller appends its own line in one write; the position of that line
 * is its number. @throws errno errors
 */
export function nextNumber(path: string): number {
  const mine = crypto.randomUUID()
  appendText(path, `${mine}\n`)
  const lines = readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
  return lines.indexOf(mine) + 1
}
