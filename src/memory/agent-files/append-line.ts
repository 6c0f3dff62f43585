/** Appends lines to a file in one write, so that lines of other processes never mix with them. */

import { closeSync, constants, fstatSync, mkdirSync, openSync, readSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { hasCode } from '../../kit/errors.ts'

const { O_RDWR, O_APPEND, O_CREAT, O_NONBLOCK, O_NOCTTY, O_NOFOLLOW } = constants
const flags = O_RDWR | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW

/**
 * `text` ends in a newline. Creates the file (0600) and its folder (0700) when absent. Starts a new line after a line that a crash cut
 * short. Does not sync, because the file only mirrors the journal. @throws errno errors, also for a symbolic link, and when the disk
 * accepted only a part
 */
export function appendText(path: string, text: string): void {
  const file = openMade(path, flags)
  try {
    const bytes = new TextEncoder().encode(`${endsTorn(file, path) ? '\n' : ''}${text}`)
    const written = writeSync(file, bytes)
    if (written < bytes.length) throw trouble('ENOSPC', path, `only ${written} of ${bytes.length} bytes were written`)
  } finally {
    closeSync(file)
  }
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

function endsTorn(file: number, path: string): boolean {
  const found = fstatSync(file)
  if (!found.isFile()) throw trouble('EINVAL', path, 'is no regular file')
  const last = new Uint8Array(1)
  return found.size > 0 && readSync(file, last, 0, 1, found.size - 1) === 1 && last[0] !== 10
}

function trouble(code: string, path: string, what: string): Error {
  return Object.assign(new Error(`${code}: "${path}": ${what}`), { code, path, errno: 0, syscall: 'write' })
}

/** Returns `2026-02-12T10:00:00Z`, without milliseconds, because `jq fromdate` requires that. */
export function timestamp(at: number): string {
  return `${new Date(at).toISOString().slice(0, 19)}Z`
}
