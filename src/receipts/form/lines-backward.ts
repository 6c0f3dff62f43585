/** Reads the lines of a file in pieces from last to first, so that the newest few of a million lines are found fast. */

import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { decode, type Line, longestLine } from './receipt-lines.ts'

const pieceSize = 64 * 1024
const newline = 0x0a

/** Yields lines like `readLines`, but the first one may be torn; stops at a line that is too long. @throws errno errors */
export function* linesBackward(path: string): Generator<Line> {
  const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    yield* backward(file)
  } finally {
    closeSync(file)
  }
}

function* backward(file: number): Generator<Line> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  let rest: Uint8Array = new Uint8Array(0)
  for (let position = fstatSync(file).size; position > 0; ) {
    const piece = new Uint8Array(Math.min(pieceSize, position))
    position -= piece.length
    readSync(file, piece, 0, piece.length, position)
    const held = Buffer.concat([piece, rest])
    // The text before this offset may continue a line of the previous piece.
    const begin = position === 0 ? 0 : held.indexOf(newline) + 1
    rest = position > 0 && begin === 0 ? held : held.subarray(0, begin)
    if (position === 0 || begin > 0) yield* reversed(decoder, held.subarray(begin))
    if (rest.length <= longestLine) continue
    yield { text: undefined, bytes: rest.length, torn: false }
    return
  }
}

function* reversed(decoder: TextDecoder, bytes: Buffer): Generator<Line> {
  let end = bytes.lastIndexOf(newline) + 1
  if (end < bytes.length) yield { text: decode(decoder, bytes.subarray(end)), bytes: bytes.length - end, torn: true }
  while (end > 0) {
    const begin = end < 2 ? 0 : bytes.lastIndexOf(newline, end - 2) + 1
    yield { text: decode(decoder, bytes.subarray(begin, end - 1)), bytes: end - begin, torn: false }
    end = begin
  }
}
