/** Reads files: text by line ranges, small files whole as bytes, and one pass over the lines for search. */

import { readSync, type Stats } from 'node:fs'
import { sha256 } from '../kit/sha256.ts'
import type { BytesRead, FileRefusal, OnLine, Scanned, Stat, TextRead } from './contract.ts'
import type { Handle } from './descriptor.ts'
import { type Locator, openRegular, quote, reading } from './locate-path.ts'

type LineRange = { readonly offset?: number; readonly limit?: number; readonly maxBytes: number }

export function readText(locator: Locator, given: string, range: LineRange): TextRead | FileRefusal {
  const found = openRegular(locator, given, 'read')
  if (!found.ok) return found
  using held = found.held
  const about = { given, path: locator.show(found.real), size: found.stat.size }
  return reading(given, held, (file) => textOf(file, about, range))
}

type About = { readonly given: string; readonly path: string; readonly size: number }

function textOf(file: Handle, about: About, range: LineRange): TextRead | FileRefusal {
  return (range.offset ?? 1) === 1 && range.limit === undefined && about.size <= range.maxBytes && about.size < SCAN_LIMIT
    ? wholeOf(file, about, range)
    : linesOf(file, about, range)
}

/** Reads a file that fits in one step: going line by line costs ten times as much. */
function wholeOf(file: Handle, about: About, range: LineRange): TextRead | FileRefusal {
  const bytes = drain(file, about.size + 1)
  // The file grew meanwhile.
  if (bytes.length > about.size) return linesOf(file, about, range)
  const nul = bytes.indexOf(0)
  if (nul >= 0) return binary(about, nul)
  const passed = { lines: linesIn(bytes), complete: true, sha256: sha256(bytes) }
  return shown(about, { bytes, offset: 1, maxBytes: range.maxBytes, passed })
}

function linesOf(
  file: Handle,
  about: About,
  { offset = 1, limit = Number.POSITIVE_INFINITY, maxBytes }: LineRange,
): TextRead | FileRefusal {
  const parts: Uint8Array[] = []
  let size = 0
  let nul = -1
  const hasher = new Bun.CryptoHasher('sha256')
  const each = (chunk: Uint8Array) => void hasher.update(chunk)
  const take = ({ line, bytes, at }: LinePiece) => {
    const isInRange = line >= offset && line < offset + limit
    // A NUL byte marks the file as binary only near the start or in the requested lines; elsewhere it is never shown.
    if (nul < 0 && (isInRange || at < 8192) && size <= maxBytes) nul = bytes.includes(0) ? at + bytes.indexOf(0) : -1
    if (isInRange && size <= maxBytes) {
      parts.push(bytes.slice())
      size += bytes.length
    }
    return nul < 0
  }
  const passed = passLines(file, take, each)
  if (nul >= 0) return binary(about, nul)
  if (parts.length === 0 && offset > 1) return pastEnd(about, offset, passed)
  const whole = passed.complete ? { ...passed, sha256: hasher.digest('hex') } : passed
  return shown(about, { bytes: Buffer.concat(parts), offset, maxBytes, passed: whole })
}

type ReadPart = { readonly bytes: Uint8Array; readonly offset: number; readonly maxBytes: number; readonly passed: Passed }

function shown({ path, size }: About, { bytes, offset, maxBytes, passed }: ReadPart): TextRead {
  const { body, cutLine } = cut(bytes, maxBytes)
  const { text, invalid } = decode(body)
  const lines = linesIn(body)
  const lastLine = offset + lines - 1
  const more = cutLine || !passed.complete || lastLine < passed.lines
  const totalLines = passed.complete ? passed.lines : undefined
  const { sha256 } = passed
  const seen = sha256 === undefined ? [] : [{ path, sha256, ...((more || offset > 1) && { was: sha256 }) }]
  return { ok: true, path, text, firstLine: offset, lastLine, totalLines, size, more, cutLine, invalid, seen }
}

/** Cuts at whole lines if at least one fits, otherwise inside the first line. */
function cut(bytes: Uint8Array, maxBytes: number): { readonly body: Uint8Array; readonly cutLine: boolean } {
  if (bytes.length <= maxBytes) return { body: bytes, cutLine: false }
  const newline = bytes.lastIndexOf(10, maxBytes - 1)
  if (newline >= 0) return { body: bytes.subarray(0, newline + 1), cutLine: false }
  return { body: utf8Prefix(bytes, maxBytes), cutLine: true }
}

function binary({ given, size }: About, at: number): FileRefusal {
  const hint = at < 2 ? ' (perhaps UTF-16)' : ''
  return { ok: false, message: `${quote(given)} is not text: NUL byte at offset ${at} of ${size} bytes${hint}` }
}

function pastEnd({ given, size }: About, offset: number, passed: Passed): FileRefusal {
  const why = passed.complete
    ? `it has ${passed.lines} lines`
    : `that is beyond the first ${SCAN_LIMIT >> 20} MiB of its ${size} bytes, which is as far as lines are counted`
  return { ok: false, message: `${quote(given)} has no line ${offset}: ${why}` }
}

/** Reads the whole file; refuses a file larger than `maxBytes` and never cuts it silently. */
export function readBytes(locator: Locator, given: string, { maxBytes }: { readonly maxBytes: number }): BytesRead | FileRefusal {
  const found = openRegular(locator, given, 'read')
  if (!found.ok) return found
  using held = found.held
  if (found.stat.size > maxBytes) return tooLarge(given, found.stat.size, maxBytes)
  return reading(given, held, (file) => {
    const bytes = drain(file, maxBytes + 1)
    return bytes.length > maxBytes ? tooLarge(given, bytes.length, maxBytes) : { ok: true, path: locator.show(found.real), bytes }
  })
}

function tooLarge(given: string, size: number, maxBytes: number): FileRefusal {
  return { ok: false, message: `${quote(given)} is too large: ${size} bytes, at most ${maxBytes} are read` }
}

/** @returns undefined for a file that is too long or may not be read */
export function contentOf(locator: Locator, path: string): { readonly bytes: Uint8Array; readonly stat: Stats } | undefined {
  const found = openRegular(locator, path, 'read')
  if (!found.ok) return undefined
  using held = found.held
  const bytes = found.stat.size > SCAN_LIMIT ? undefined : reading(path, held, (file) => drain(file, SCAN_LIMIT))
  return bytes instanceof Uint8Array ? { bytes, stat: found.stat } : undefined
}

/** Reads up to `max` bytes from the start, whatever the recorded size: a file may grow while it is read. */
export function drain(file: Handle, max: number): Uint8Array {
  const parts: Uint8Array[] = []
  for (let at = 0; at < max; ) {
    const part = new Uint8Array(Math.min(65_536, max - at))
    const count = readSync(file.fd, part, 0, part.length, at)
    if (count === 0) break
    parts.push(part.subarray(0, count))
    at += count
  }
  return Buffer.concat(parts)
}

export function scan(
  locator: Locator,
  given: string,
  { maxLineBytes, onLine }: { readonly maxLineBytes: number; readonly onLine: OnLine },
): Scanned | FileRefusal {
  const found = openRegular(locator, given, 'read')
  if (!found.ok) return found
  using held = found.held
  let binaryFile = false
  let stopped = false
  const take = joinPieces(maxLineBytes, (line, bytes) => {
    binaryFile ||= bytes.includes(0)
    stopped = binaryFile || !onLine(line, () => new TextDecoder().decode(bytes))
    return !stopped
  })
  return reading(given, held, (file) => {
    const passed = passLines(file, take.piece)
    if (passed.complete) take.end(passed.lines)
    return { ok: true, path: locator.show(found.real), binary: binaryFile, complete: passed.complete || stopped }
  })
}

/** Joins the pieces of a line, at most `max` bytes of it and without its line ending. */
function joinPieces(max: number, onLine: (line: number, bytes: Uint8Array) => boolean) {
  let held: Uint8Array | undefined
  const whole = (bytes: Uint8Array) => utf8Prefix(trimEnd(bytes), max)
  return {
    piece({ line, bytes, ends }: { readonly line: number; readonly bytes: Uint8Array; readonly ends: boolean }): boolean {
      const room = max + 2 - (held?.length ?? 0)
      const joined = held === undefined ? bytes : room > 0 ? Buffer.concat([held, bytes.subarray(0, room)]) : held
      held = ends ? undefined : joined.slice(0, max + 2)
      return ends ? onLine(line, whole(joined)) : true
    },
    end(line: number): void {
      if (held !== undefined) onLine(line, whole(held))
    },
  }
}

function trimEnd(bytes: Uint8Array): Uint8Array {
  const end = bytes.at(-1) === 10 ? bytes.length - 1 : bytes.length
  return bytes.subarray(0, bytes[end - 1] === 13 ? end - 1 : end)
}

export function stat(locator: Locator, given: string): Stat | FileRefusal {
  const found = locator.locate(given, 'read')
  if (!found.ok) return found
  using _ = found.held
  const { size, mtimeMs, mode } = found.stat
  const type = found.stat.isFile() ? 'file' : found.stat.isDirectory() ? 'directory' : 'other'
  return { ok: true, path: locator.show(found.real), type, size, mtimeMs, mode: mode & 0o7777 }
}

function decode(bytes: Uint8Array): { readonly text: string; readonly invalid: boolean } {
  try {
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(bytes), invalid: false }
  } catch {
    return { text: new TextDecoder().decode(bytes), invalid: true }
  }
}

/** The last line also counts without a line ending. */
function linesIn(bytes: Uint8Array): number {
  let lines = bytes.length > 0 && bytes[bytes.length - 1] !== 10 ? 1 : 0
  for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at + 1)) lines++
  return lines
}

const CHUNK = 16_384

/** The most bytes of a file that one scan reads. */
export const SCAN_LIMIT = 64 * 1024 * 1024

/** A piece of one line; `ends` when its newline (which is part of `bytes`) or the end of the file closes it. */
export type LinePiece = { readonly line: number; readonly bytes: Uint8Array; readonly ends: boolean; readonly at: number }

/** `complete` is false when the scan limit was reached before the end of the file; `sha256` is of a complete one, where it was computed. */
export type Passed = { readonly lines: number; readonly complete: boolean; readonly sha256?: string }

/**
 * Reads a file's lines in one pass, in bounded memory. Passes pieces to `take` until it returns false (then `complete` is false). The bytes
 * are valid only during the call. `each` gets every byte that was read.
 */
export function passLines(file: Handle, take: (piece: LinePiece) => boolean, each?: (chunk: Uint8Array) => void): Passed {
  const buffer = new Uint8Array(CHUNK)
  let line = 1
  let open = false
  for (let at = 0; at < SCAN_LIMIT; ) {
    const count = readSync(file.fd, buffer, 0, CHUNK, at)
    if (count === 0) return { lines: open ? line : line - 1, complete: true }
    each?.(buffer.subarray(0, count))
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

/** @returns the longest prefix of at most `max` bytes that does not split a UTF-8 character */
export function utf8Prefix(bytes: Uint8Array, max: number): Uint8Array {
  if (bytes.length <= max) return bytes
  let end = max
  while (end > 0 && max - end < 4 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return bytes.subarray(0, end)
}
