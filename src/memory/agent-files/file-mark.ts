/** Tracks how much of an agent's file is accounted for, and reads the lines after that point: our own and those of other programs. */

import { closeSync, constants, fstatSync, openSync } from 'node:fs'
import { atEnd, unlessMissing } from '../../kit/errors.ts'
import { sha256 } from '../../kit/sha256.ts'
import { bytesOf, type FileLine, linesOf } from './bounded-read.ts'
import { appendText } from './disk.ts'

/**
 * The first `bytes` (`lines` lines) are accounted for; `tail` is the digest of the last of them. The journal entries after `since` produce
 * the text after the first `base` bytes, whose digest is `baseSha256`; `open` maps each run pending at that point to the number of its
 * lines before it.
 */
export type FileMark = {
  readonly bytes: number
  readonly lines: number
  readonly tail: string
  readonly since: number
  readonly base: number
  readonly baseSha256: string
  readonly open: { readonly [runId: string]: number }
}

export const freshMark: FileMark = { bytes: 0, lines: 0, tail: sha256(''), since: 0, base: 0, baseSha256: sha256(''), open: {} }

/** `lines`: the lines after the mark, or all lines when the file was replaced; undefined when there are too many to read in one turn. */
export type UnreadLines = {
  readonly size: number
  readonly tail: string
  readonly replaced: boolean
  readonly lines: readonly FileLine[] | undefined
}

/** The most bytes read at once. */
const longest = 8 << 20
const tailBytes = 256

/** Treats a missing file as empty and refuses a symbolic link. First adds a newline to an unfinished last line. @throws errno errors */
export function lookAt(path: string, mark: FileMark): UnreadLines {
  const found = read(path, mark)
  if (!found.lines?.at(-1)?.torn) return found
  // End the unfinished line: its writer may be about to continue, and its next text becomes a separate line.
  appendText(path, '')
  return read(path, mark)
}

/** Works like lookAt, but never writes to the file. */
export function read(path: string, mark: FileMark): UnreadLines {
  const file = openOwn(path)
  if (file === undefined) return { size: 0, tail: freshMark.tail, replaced: mark.bytes > 0, lines: [] }
  using _end = atEnd(() => closeSync(file))
  const { size } = fstatSync(file)
  const tail = tailOf(file, size)
  if (size === mark.bytes && tail === mark.tail) return { size, tail, replaced: false, lines: [] }
  const replaced = size < mark.bytes || tailOf(file, mark.bytes) !== mark.tail
  const from = replaced ? 0 : mark.bytes
  return { size, tail, replaced, lines: size - from > longest ? undefined : [...linesOf(file, { from, to: size })] }
}

/** Returns the digest of the last bytes before an offset. @throws errno errors */
export function tailAt(path: string, size: number): string {
  const file = openOwn(path)
  if (file === undefined) return freshMark.tail
  using _end = atEnd(() => closeSync(file))
  return tailOf(file, size)
}

function tailOf(file: number, size: number): string {
  return sha256(bytesOf(file, { from: Math.max(0, size - tailBytes), to: size }))
}

/** Returns undefined when there is no file. @throws errno errors, also for a symbolic link, a folder or a FIFO */
export function openOwn(path: string): number | undefined {
  const { O_RDONLY, O_NONBLOCK, O_NOFOLLOW } = constants
  const file = unlessMissing(() => openSync(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW))
  if (file === undefined || fstatSync(file).isFile()) return file
  closeSync(file)
  throw Object.assign(new Error(`EINVAL: "${path}" is not a regular file`), { code: 'EINVAL', path, errno: 0, syscall: 'open' })
}
