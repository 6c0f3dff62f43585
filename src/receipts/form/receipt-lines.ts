/** Reads the lines of a log in pieces; the log may be huge, damaged or truncated. */

import { closeSync, constants, openSync, readSync } from 'node:fs'
import { atEnd, attempt } from '../../kit/errors.ts'

/**
 * `text` is undefined when the bytes are invalid UTF-8 or the line is longer than 1 MiB. A torn line is the last one, without its newline.
 */
export type LogLine = { readonly text: string | undefined; readonly bytes: number; readonly torn: boolean }

const pieceSize = 1 << 20
export const longestLine = pieceSize
const newline = 0x0a

/** @throws errno errors (ENOENT when there is no file). Stops after a line that is too long. */
export function* readLines(path: string, from = 0): Generator<LogLine> {
  const file = openLog(path)
  using _end = atEnd(() => closeSync(file))
  yield* linesOf(file, from)
}

/** Opens a log to read it. @throws errno errors, also for a symbolic link */
export function openLog(path: string): number {
  return openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
}

/** Reads an open file from the byte offset where a line starts. */
export function* linesOf(file: number, from: number): Generator<LogLine> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  const buffer = new Uint8Array(2 * pieceSize)
  const tidy = collectGarbageEvery(16)
  let held = 0
  for (let position = from; ; ) {
    const count = readSync(file, buffer, held, pieceSize, position)
    if (count === 0) break
    position += count
    tidy()
    const end = buffer.subarray(0, held + count).lastIndexOf(newline) + 1
    yield* whole(decoder, buffer.subarray(0, end))
    buffer.copyWithin(0, end, held + count)
    held += count - end
    if (held <= pieceSize) continue
    yield { text: undefined, bytes: held, torn: false }
    return
  }
  if (held > 0) yield { text: decode(decoder, buffer.subarray(0, held)), bytes: held, torn: true }
}

/** Decodes many lines at once; if that fails, decodes each line separately to find the invalid one. */
function* whole(decoder: TextDecoder, bytes: Uint8Array): Generator<LogLine> {
  const text = decode(decoder, bytes)
  if (text === undefined) return yield* singly(decoder, bytes)
  for (let at = 0, end = text.indexOf('\n'); end >= 0; at = end + 1, end = text.indexOf('\n', at)) {
    const line = text.slice(at, end)
    const bytes = Buffer.byteLength(line) + 1
    yield { text: bytes > pieceSize ? undefined : line, bytes, torn: false }
  }
}

function* singly(decoder: TextDecoder, bytes: Uint8Array): Generator<LogLine> {
  for (let at = 0, end = bytes.indexOf(newline); end >= 0; at = end + 1, end = bytes.indexOf(newline, at)) {
    yield { text: decode(decoder, bytes.subarray(at, end)), bytes: end + 1 - at, torn: false }
  }
}

/** @returns undefined for invalid UTF-8 */
export function decode(decoder: TextDecoder, bytes: Uint8Array): string | undefined {
  return attempt(() => decoder.decode(bytes))
}

/**
 * Collects garbage in long loops, because otherwise the engine lets hundreds of megabytes accumulate. @returns a function to call once per
 * item; it collects at every `count`th call
 */
export function collectGarbageEvery(count: number): () => void {
  let seen = 0
  return () => {
    seen += 1
    if (seen % count === 0) Bun.gc(true)
  }
}
