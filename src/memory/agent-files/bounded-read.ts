/** Reads regular files of an agent folder in pieces, up to a fixed limit. */

import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { atEnd, errnoOf, errorText, hasCode, unlessMissing } from '../../kit/errors.ts'
import { sha256 } from '../../kit/sha256.ts'

/** `from` and `end` are byte positions, `end` after the newline. `text` is undefined for a line longer than the limit. */
export type FileLine = { readonly from: number; readonly end: number; readonly text: string | undefined; readonly torn: boolean }

export type ByteRange = { readonly from: number; readonly to: number }

const pieceSize = 65_536
const newline = 10

/** The limit of a history line in bytes; longer lines are ignored. */
export const lineBound = 1 << 20

/** The limit of soul.md and summary.md in bytes; longer texts would leave too little room for the conversation. */
export const textBound = 65_536

/** Refuses FIFOs and devices, because reading them might never end. @throws errno errors */
export function openRegular(path: string, flags = 0): number {
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | flags)
  if (fstatSync(file).isFile()) return file
  closeSync(file)
  throw Object.assign(new Error(`EINVAL: "${path}" is not a regular file`), { code: 'EINVAL', path, errno: 0, syscall: 'open' })
}

/** @throws errno errors, also for a FIFO or a device */
export function withFile<T>(path: string, use: (file: number, size: number) => T, flags = 0): T {
  const file = openRegular(path, flags)
  using _end = atEnd(() => closeSync(file))
  return use(file, fstatSync(file).size)
}

/** Returns undefined when there is no file. @throws errno errors, also for a symbolic link */
export function withOwnFile<T>(path: string, use: (file: number, size: number) => T): T | undefined {
  return unlessMissing(() => withFile(path, use, constants.O_NOFOLLOW))
}

/** `whole` is false when the file is longer than the part read. Invalid UTF-8 becomes U+FFFD. */
export type TextFile =
  | { readonly state: 'missing' }
  | { readonly state: 'unusable'; readonly why: string }
  | { readonly state: 'read'; readonly text: string; readonly bytes: number; readonly whole: boolean }

/** Removes white space at the end, because editors add a newline. Returns file errors instead of throwing them. */
export function readText(path: string, bound: number): TextFile {
  try {
    return withFile(path, (file, size) => {
      const bytes = bytesOf(file, { from: 0, to: Math.min(size, bound) })
      // Stream mode drops a character that the limit cuts in two.
      const text = new TextDecoder().decode(bytes, { stream: size > bound })
      return { state: 'read', text: text.trimEnd(), bytes: size, whole: size <= bound }
    })
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return hasCode(error, 'ENOENT') ? { state: 'missing' } : { state: 'unusable', why: errorText(error) }
  }
}

/** Returns the SHA-256 in hex of the file or of a range in it. Treats a missing file as empty. @throws errno errors */
export function digestOf(path: string, range?: ByteRange): string {
  const hasher = new Bun.CryptoHasher('sha256')
  unlessMissing(() =>
    withFile(path, (file, size) => {
      for (const bytes of piecesOf(file, range ?? { from: 0, to: size })) hasher.update(bytes)
    }),
  )
  return hasher.digest('hex')
}

/** Each piece overwrites the previous one. Ends early at the end of the file. */
export function* piecesOf(file: number, { from, to }: ByteRange): Generator<Uint8Array> {
  const buffer = new Uint8Array(Math.max(1, Math.min(pieceSize, to - from)))
  for (let position = from; position < to; ) {
    const count = readSync(file, buffer, 0, Math.min(buffer.length, to - position), position)
    if (count === 0) return
    position += count
    yield buffer.subarray(0, count)
  }
}

export function bytesOf(file: number, range: ByteRange): Buffer {
  return Buffer.concat(Array.from(piecesOf(file, range), (bytes) => bytes.slice()))
}

const tailBytes = 256

/** Returns the digest of the last bytes before an offset, by which a later reader knows whether the file only grew. @throws errno errors */
export function tailOf(file: number, size: number): string {
  return sha256(bytesOf(file, { from: Math.max(0, size - tailBytes), to: size }))
}

/** Tells whether the last line has no newline. @throws errno errors */
export function endsTorn(file: number, size: number): boolean {
  const [last = newline] = bytesOf(file, { from: Math.max(0, size - 1), to: size })
  return last !== newline
}

/** `range.from` must be the start of a line. */
export function* linesOf(file: number, range: ByteRange, bound = lineBound): Generator<FileLine> {
  let held: Uint8Array[] = []
  let [length, from, position] = [0, range.from, range.from]
  const hold = (bytes: Uint8Array) => {
    length += bytes.length
    position += bytes.length
    if (length <= bound + 1) held.push(bytes.slice())
  }
  const take = (torn: boolean): FileLine => {
    const text = length - (torn ? 0 : 1) > bound ? undefined : new TextDecoder().decode(Buffer.concat(held)).replace(/\n$/, '')
    const line = { from, end: position, text, torn }
    held = []
    length = 0
    from = position
    return line
  }
  for (const bytes of piecesOf(file, range)) {
    let at = 0
    for (let end = bytes.indexOf(newline); end >= 0; end = bytes.indexOf(newline, at)) {
      hold(bytes.subarray(at, end + 1))
      yield take(false)
      at = end + 1
    }
    hold(bytes.subarray(at))
  }
  if (length > 0) yield take(true)
}
