/** Reads and writes the file with the id of the conversation that an agent's session continues. */

import { closeSync, constants, fstatSync, ftruncateSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { unlessMissing } from '../../kit/errors.ts'
import { openMade } from './append-line.ts'

/** Returns undefined when there is no file, or no valid id in it. @throws errno errors except ENOENT */
export function readPointer(path: string): string | undefined {
  const id = unlessMissing(() => readFileSync(path, 'utf8').trim())
  return id !== undefined && /^\w{1,100}$/.test(id) ? id : undefined
}

/**
 * Overwrites the file with one write smaller than a disk sector, so a concurrent reader sees either the old or the new id. @throws errno
 * errors
 */
export function writePointer(path: string, id: string): void {
  const { O_RDWR, O_CREAT, O_NOFOLLOW, O_NONBLOCK } = constants
  const file = openMade(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK)
  try {
    const bytes = new TextEncoder().encode(`${id}\n`)
    if (writeSync(file, bytes, 0, bytes.length, 0) < bytes.length)
      throw Object.assign(new Error(`"${path}": the disk is full`), { code: 'ENOSPC' })
    if (fstatSync(file).size > bytes.length) ftruncateSync(file, bytes.length)
  } finally {
    closeSync(file)
  }
}

export function forgetPointer(path: string): void {
  rmSync(path, { force: true })
}
