/** Reads the end of the receipts log: a start tells from it, without writing, whether anything needs repair. */

import { closeSync, constants, existsSync, fstatSync, openSync, readSync } from 'node:fs'
import { atEnd, attempt } from '../../kit/errors.ts'
import type { Checkpoint } from '../contract.ts'
import { isSealed } from '../form/anchor.ts'
import { contentHash } from '../form/receipt.ts'
import { readKey } from '../key.ts'

/**
 * Tells whether log, key and checkpoint are as the last append left them, so that nothing needs repair. Only reads, and needs no lock.
 * Returns false in doubt: `createReceiptLog` without drafts then reports the cause.
 */
export function isConsistent(
  paths: { readonly log: string; readonly head: string; readonly key: string },
  known: Checkpoint | undefined,
): boolean {
  if (!known) return !existsSync(paths.log) && !existsSync(paths.head)
  try {
    const file = openSync(paths.log, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    using _end = atEnd(() => closeSync(file))
    const key = readKey(paths.key)
    return key.ok && fstatSync(file).size === known.size && isSealed(key.key, known) && endsAs(file, known)
  } catch {
    return false
  }
}

/** Tells whether the line that ends at the checkpoint's size has the checkpoint's head as its hash. */
export function endsAs(file: number, { head, size }: Pick<Checkpoint, 'head' | 'size'>): boolean {
  const line = lineBefore(file, size)
  return line !== undefined && contentHash(line, head) === head
}

/**
 * Returns the text between the last two newlines before `end`; undefined when `end` does not follow a newline or the bytes are invalid
 * UTF-8.
 */
export function lineBefore(file: number, end: number): string | undefined {
  for (let length = 4096; ; length *= 4) {
    const bytes = new Uint8Array(Math.min(length, end))
    readSync(file, bytes, 0, bytes.length, end - bytes.length)
    if (bytes[bytes.length - 1] !== 0x0a) return undefined
    const begin = bytes.subarray(0, -1).lastIndexOf(0x0a) + 1
    if (begin > 0 || bytes.length === end) return decoded(bytes.subarray(begin, -1))
  }
}

function decoded(bytes: Uint8Array): string | undefined {
  return attempt(() => new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes))
}
