/** The head file: the newest anchor beside the log, brought up to date by every append. */

import { closeSync, constants, fstatSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs'
import { type Anchor, headLine, parseAnchor } from './form/anchor.ts'
import { isMissing } from './receipt-failure.ts'

/**
 * One write of less than a disk sector, over the old one: renaming over it would make ext4 flush a file every time, as dear as an fsync.
 * Not fsynced: after a power cut it may be old, and the checkpoint in the database is the one that counts. @throws errno errors
 */
export function writeHead(path: string, anchor: Anchor): void {
  const bytes = new TextEncoder().encode(`${headLine(anchor)}\n`)
  const file = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK, 0o600)
  try {
    writeSync(file, bytes, 0, bytes.length, 0)
    if (fstatSync(file).size > bytes.length) ftruncateSync(file, bytes.length)
  } finally {
    closeSync(file)
  }
}

/** An empty file is none: a crash or a full disk can come between making it and writing it. @throws errno errors other than a missing file */
export function readHead(path: string): { readonly state: 'missing' | 'damaged' } | { readonly state: 'read'; readonly anchor: Anchor } {
  try {
    const whole = steadyText(path)
    if (whole === '') return { state: 'missing' }
    const text = whole.replace(/\n+$/, '')
    const anchor = text === text.trim() ? parseAnchor(text) : undefined
    return anchor ? { state: 'read', anchor } : { state: 'damaged' }
  } catch (error) {
    if (isMissing(error)) return { state: 'missing' }
    throw error
  }
}

/** A writer may be at it while we read: what two looks agree on is whole. */
function steadyText(path: string): string {
  const look = () => readFileSync(path, 'latin1').slice(0, 1000)
  const [first, second] = [look(), look()]
  return first === second ? first : look()
}
