/** Which conversation in memory an agent's session goes on with: a file that holds its id. */

import { closeSync, constants, fstatSync, ftruncateSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { openMade } from './append-line.ts'

/** Undefined when there is none yet, or none that could be an id. @throws errno errors but ENOENT */
export function readPointer(path: string): string | undefined {
  try {
    const id = readFileSync(path, 'utf8').trim()
    return /^\w{1,100}$/.test(id) ? id : undefined
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

/** One write of less than a disk sector, over the old one: whoever reads it meanwhile reads either. @throws errno errors */
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
