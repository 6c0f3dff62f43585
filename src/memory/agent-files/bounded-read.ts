/** Reading the files of an agent folder: regular ones only, piece by piece, and never more than a bound. */

import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'

/** `from` and `end` are byte positions, `end` after the newline. `text` is undefined for a line longer than the bound. */
export type FileLine = { readonly from: number; readonly end: number; readonly text: string | undefined; readonly torn: boolean }

export type Range = { readonly from: number; readonly to: number }

const pieceSize = 65_536
const newline = 10

/** A line of the history; a message longer than this is none. */
export const lineBound = 1 << 20

/** Of soul.md and summary.md: what is longer stands in the way of the conversation. In bytes. */
export const textBound = 65_536

/** A FIFO or a device in the place of a file would never end. @throws errno errors */
export function withFile<T>(path: string, use: (file: number, size: number) => T): T {
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const found = fstatSync(file)
    if (!found.isFile()) throw Object.assign(new Error(`EINVAL: "${path}" is no regular file`), { code: 'EINVAL' })
    return use(file, found.size)
  } finally {
    closeSync(file)
  }
}

/** `whole` is false when there is more than was read. Bytes that are no UTF-8 become U+FFFD. */
export type TextFile =
  | { readonly state: 'missing' }
  | { readonly state: 'unusable'; readonly why: string }
  | { readonly state: 'read'; readonly text: string; readonly bytes: number; readonly whole: boolean }

/** Without white space at its end: editors add a newline. Never throws for trouble with the file. */
export function readText(path: string, bound: number): TextFile {
  try {
    return withFile(path, (file, size) => {
      const bytes = bytesOf(file, { from: 0, to: Math.min(size, bound) })
      // As a stream: of a character that the bound cuts in two nothing is kept.
      const text = new TextDecoder().decode(bytes, { stream: size > bound })
      return { state: 'read', text: text.trimEnd(), bytes: size, whole: size <= bound }
    })
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error)) throw error
    return error.code === 'ENOENT' ? { state: 'missing' } : { state: 'unusable', why: error.message }
  }
}

/** SHA-256 in hex of a part of a file, or of all of it. A file that is not there is an empty one. @throws errno errors */
export function digestOf(path: string, range?: Range): string {
  const hasher = new Bun.CryptoHasher('sha256')
  try {
    withFile(path, (file, size) => {
      for (const bytes of piecesOf(file, range ?? { from: 0, to: size })) hasher.update(bytes)
    })
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
  }
  return hasher.digest('hex')
}

/** Each piece is overwritten by the next. Ends early where the file does. */
export function* piecesOf(file: number, { from, to }: Range): Generator<Uint8Array> {
  const buffer = new Uint8Array(Math.max(1, Math.min(pieceSize, to - from)))
  for (let position = from; position < to; ) {
    const count = readSync(file, buffer, 0, Math.min(buffer.length, to - position), position)
    if (count === 0) return
    position += count
    yield buffer.subarray(0, count)
  }
}

export function bytesOf(file: number, range: Range): Buffer {
  return Buffer.concat(Array.from(piecesOf(file, range), (bytes) => bytes.slice()))
}

/** From a position that begins a line. */
export function* linesOf(file: number, range: Range): Generator<FileLine> {
  let held: Uint8Array[] = []
  let [length, from, position] = [0, range.from, range.from]
  const hold = (bytes: Uint8Array) => {
    length += bytes.length
    position += bytes.length
    if (length <= lineBound + 1) held.push(bytes.slice())
  }
  const take = (torn: boolean): FileLine => {
    const text = length - (torn ? 0 : 1) > lineBound ? undefined : new TextDecoder().decode(Buffer.concat(held)).replace(/\n$/, '')
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
