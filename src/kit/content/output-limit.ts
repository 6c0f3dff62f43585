/** Limits output: keeps the beginning and the end, and counts the omitted bytes exactly. */

import { grouped } from '../text.ts'

/** Collects text of any length in memory bounded by `maxBytes`. */
export type Collector = {
  push(text: string): void
  /** Returns the whole text, or head, notice and tail: together at most `maxBytes` of UTF-8. */
  text(): string
  /** Bytes of UTF-8 pushed so far. */
  total(): number
}

/** Keeps the end of what is pushed, so that a reader continues where it stopped. All numbers are bytes of UTF-8 since the beginning. */
export type OutputLog = {
  push(text: string): void
  /** Returns at most `most` bytes of whole characters; `from` is later than `since` when the beginning was dropped. */
  read(since: number, most: number): { readonly text: string; readonly from: number; readonly next: number }
  total(): number
}

export function createOutputLog(maxBytes: number): OutputLog {
  const ring = createRing(maxBytes)
  let total = 0
  return {
    push(text) {
      const bytes = new TextEncoder().encode(text)
      ring.push(bytes)
      total += bytes.length
    },
    read(since, most) {
      const lastBytes = ring.bytes()
      const first = total - lastBytes.length
      let from = Math.min(total, Math.max(since, first))
      while (from < total && isContinuationByte(lastBytes[from - first])) from++
      let next = Math.min(total, from + most)
      while (next > from && isContinuationByte(lastBytes[next - first])) next--
      return { text: whole(lastBytes.subarray(from - first, next - first), new Uint8Array()), from, next }
    },
    total: () => total,
  }
}

const NOTICE_ROOM = 80
const LINE_WINDOW = 512

/** @param hint how to read what was omitted, given the first omitted byte; part of the notice */
export function createCollector(maxBytes: number, hint?: (offset: number) => string): Collector {
  const size = Math.ceil(maxBytes / 2)
  const head = createHead(size)
  // Most output is short, and a limit may be many megabytes.
  let tail: ReturnType<typeof createRing> | undefined
  let total = 0
  return {
    push(text) {
      const bytes = new TextEncoder().encode(text)
      const first = bytes.subarray(0, Math.max(0, size - total))
      if (first.length > 0) head.push(first)
      if (first.length < bytes.length) {
        tail ??= createRing(Math.floor(maxBytes / 2))
        tail.push(bytes.subarray(first.length))
      }
      total += bytes.length
    },
    text() {
      const last = tail?.bytes() ?? new Uint8Array(0)
      return total <= maxBytes ? whole(head.bytes(), last) : cut(head.bytes(), last, { total, hint })
    },
    total: () => total,
  }
}

/** @param hint see createCollector */
export function capText(text: string, maxBytes: number, hint?: (offset: number) => string): string {
  // A UTF-16 unit needs at most three bytes, so most results need no counting.
  if (text.length * 3 <= maxBytes || Buffer.byteLength(text) <= maxBytes) return text.toWellFormed()
  const collector = createCollector(maxBytes, hint)
  collector.push(text)
  return collector.text()
}

/** Collects at most `size` bytes in memory that grows with them. */
function createHead(size: number): { push(bytes: Uint8Array): void; bytes(): Uint8Array } {
  let [memory, length] = [new Uint8Array(Math.min(size, 4_096)), 0]
  return {
    push(bytes) {
      if (length + bytes.length > memory.length) {
        const larger = new Uint8Array(Math.min(size, Math.max(memory.length * 2, length + bytes.length)))
        larger.set(memory.subarray(0, length))
        memory = larger
      }
      memory.set(bytes, length)
      length += bytes.length
    },
    bytes: () => memory.subarray(0, length),
  }
}

function whole(head: Uint8Array, tail: Uint8Array): string {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(Buffer.concat([head, tail]))
}

type Whole = { readonly total: number; readonly hint: ((offset: number) => string) | undefined }

function cut(head: Uint8Array, tail: Uint8Array, { total, hint }: Whole): string {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  const room = NOTICE_ROOM + (hint ? hint(total).length + 2 : 0)
  const first = headEnd(head, Math.max(0, head.length - room))
  const last = tailStart(tail)
  const omitted = total - first.length - last.length
  const notice = `[… ${grouped(omitted)} of ${grouped(total)} bytes omitted${hint ? `; ${hint(first.length)}` : ''} …]`
  const gap = first.length > 0 && first.at(-1) !== 10 ? '\n' : ''
  return `${decoder.decode(first)}${gap}${notice}\n${decoder.decode(last)}`
}

/** Cuts after a whole line if one ends nearby (half a line may be half a secret), otherwise between two characters. */
function headEnd(bytes: Uint8Array, max: number): Uint8Array {
  const newline = bytes.subarray(0, max).lastIndexOf(10)
  if (newline >= 0 && newline >= max - LINE_WINDOW) return bytes.subarray(0, newline + 1)
  let end = max
  while (end > 0 && isContinuationByte(bytes[end])) end--
  return bytes.subarray(0, end)
}

function tailStart(bytes: Uint8Array): Uint8Array {
  const newline = bytes.indexOf(10)
  if (newline >= 0 && newline < LINE_WINDOW && newline < bytes.length - 1) return bytes.subarray(newline + 1)
  let start = 0
  while (start < bytes.length && isContinuationByte(bytes[start])) start++
  return bytes.subarray(start)
}

function isContinuationByte(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80
}

/** Keeps the last `size` bytes pushed. */
function createRing(size: number): { push(bytes: Uint8Array): void; bytes(): Uint8Array } {
  const ring = new Uint8Array(size)
  let written = 0
  return {
    push(bytes) {
      const lastBytes = bytes.length > size ? bytes.subarray(bytes.length - size) : bytes
      written += bytes.length - lastBytes.length
      const at = size === 0 ? 0 : written % size
      const fits = lastBytes.subarray(0, size - at)
      ring.set(fits, at)
      ring.set(lastBytes.subarray(fits.length), 0)
      written += lastBytes.length
    },
    bytes() {
      if (written <= size) return ring.subarray(0, written)
      const at = written % size
      return Buffer.concat([ring.subarray(at), ring.subarray(0, at)])
    },
  }
}
