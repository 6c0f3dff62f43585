/** A file's lines in one pass, in bounded memory. */

import { readSync } from 'node:fs'
import type { Handle } from './descriptor.ts'

const CHUNK = 16_384

/** How much of a file is gone through for one question, in bytes. */
export const SCAN_LIMIT = 64 * 1024 * 1024

/** A piece of one line; `ends` when its newline (which is part of `bytes`) or the end of the file closes it. */
export type Piece = { readonly line: number; readonly bytes: Uint8Array; readonly ends: boolean; readonly at: number }

/** `complete` is false when the scan limit was reached before the end of the file. */
export type Passed = { readonly lines: number; readonly complete: boolean }

/** Hands out pieces until `take` returns false (then `complete` is false). The bytes are valid only during the call. */
export function passLines(file: Handle, take: (piece: Piece) => boolean, limit: number = SCAN_LIMIT): Passed {
  const buffer = new Uint8Array(CHUNK)
  let line = 1
  let open = false
  for (let at = 0; at < limit; ) {
    const count = readSync(file.fd, buffer, 0, CHUNK, at)
    if (count === 0) return { lines: open ? line : line - 1, complete: true }
    for (let start = 0; start < count; ) {
      const newline = buffer.indexOf(10, start)
      const ends = newline >= 0 && newline < count
      const end = ends ? newline + 1 : count
      if (!take({ line, bytes: buffer.subarray(start, end), ends, at: at + start })) return { lines: line, complete: false }
      if (ends) line++
      open = !ends
      start = end
    }
    at += count
  }
  return { lines: line, complete: false }
}

/** The longest prefix of at most `max` bytes that does not cut a UTF-8 character. */
export function utf8Prefix(bytes: Uint8Array, max: number): Uint8Array {
  if (bytes.length <= max) return bytes
  let end = max
  while (end > 0 && max - end < 4 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return bytes.subarray(0, end)
}
