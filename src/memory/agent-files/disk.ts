/** Defines the few disk operations that replace files of an agent folder, so that tests can simulate a crash before each of them. */

import {
  closeSync,
  constants,
  fchmodSync,
  fdatasyncSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'

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

const { O_WRONLY, O_CREAT, O_TRUNC, O_APPEND, O_NONBLOCK, O_RDONLY } = constants

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
    try {
      fsyncSync(folder)
    } finally {
      closeSync(folder)
    }
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
  try {
    writeAll(disk, file, bytes)
    disk.sync(file)
  } finally {
    disk.close(file)
  }
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
  return error instanceof Error && 'code' in error && typeof error.code === 'string' && /^(E[A-Z]+|SQLITE_[A-Z_]+)$/.test(error.code)
    ? error.message
    : undefined
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
