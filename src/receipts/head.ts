/** Reads and writes the head file, which contains the newest anchor beside the log; every append updates it. */

import { closeSync, constants, fstatSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs'
import { atEnd, hasCode } from '../kit/errors.ts'
import { type Anchor, headLine, parseAnchor } from './form/anchor.ts'

/**
 * Overwrites the file with one write smaller than a disk sector: a rename would make ext4 flush a file every time, which costs as much as
 * an fsync. Not fsynced: after a power failure it may be old, and the checkpoint in the database decides. @throws errno errors
 */
export function writeHead(path: string, anchor: Anchor): void {
  const bytes = new TextEncoder().encode(`${headLine(anchor)}\n`)
  const file = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK, 0o600)
  using _end = atEnd(() => closeSync(file))
  writeSync(file, bytes, 0, bytes.length, 0)
  if (fstatSync(file).size > bytes.length) ftruncateSync(file, bytes.length)
}

/**
 * Treats an empty file as missing: a crash or a full disk can come between creating and writing it. @throws errno errors other than a
 * missing file
 */
export function readHead(path: string): { readonly state: 'missing' | 'damaged' } | { readonly state: 'read'; readonly anchor: Anchor } {
  try {
    const whole = steadyText(path)
    if (whole === '') return { state: 'missing' }
    const text = whole.replace(/\n+$/, '')
    const anchor = text === text.trim() ? parseAnchor(text) : undefined
    return anchor ? { state: 'read', anchor } : { state: 'damaged' }
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return { state: 'missing' }
    throw error
  }
}

/** A writer may be active, so reads twice: equal texts are complete. */
function steadyText(path: string): string {
  const read = () => readFileSync(path, 'latin1').slice(0, 1000)
  const [first, second] = [read(), read()]
  return first === second ? first : read()
}
