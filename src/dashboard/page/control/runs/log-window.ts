/** Keeps the part of a log that is shown as bytes, and splits it into pieces of text, so that a new line draws only the last piece. */

export type LogWindow = {
  /** The byte of the log at which `bytes` begin. */
  readonly from: number
  readonly bytes: Uint8Array
}

/** The text that begins at this byte of the log. */
export type LogPiece = { readonly at: number; readonly text: string }

/** More than this is never kept, in bytes; who follows a flood sees its end. */
export const mostBytes = 1_048_576
const pieceBytes = 16_384
const newline = 10

export const emptyWindow: LogWindow = { from: 0, bytes: new Uint8Array() }

export function endOf({ from, bytes }: LogWindow): number {
  return from + bytes.length
}

/** Adds bytes behind the window, and drops what is too much at its beginning. Bytes that it has already change nothing. */
export function appended(window: LogWindow, at: number, bytes: Uint8Array): LogWindow {
  const fresh = bytes.subarray(Math.max(0, endOf(window) - at))
  const joined = at > endOf(window) ? { from: at, bytes } : { from: window.from, bytes: joinedBytes(window.bytes, fresh) }
  const extra = Math.max(0, joined.bytes.length - mostBytes)
  return extra === 0 ? joined : { from: joined.from + extra, bytes: joined.bytes.slice(extra) }
}

/** Adds the bytes right before the window. */
export function prepended(window: LogWindow, at: number, bytes: Uint8Array): LogWindow {
  const before = bytes.subarray(0, Math.max(0, window.from - at))
  return { from: at, bytes: joinedBytes(before, window.bytes) }
}

/** Pieces end after a line where they can; their borders stay the same while the log grows. */
export function piecesOf({ from, bytes }: LogWindow): readonly LogPiece[] {
  const decoder = new TextDecoder()
  const pieces: LogPiece[] = []
  let at = startOfCharacter(bytes, 0)
  while (at < bytes.length) {
    const end = cutOf(bytes, at)
    pieces.push({ at: from + at, text: decoder.decode(bytes.subarray(at, end)) })
    at = end
  }
  return pieces
}

/** Behind the first line that ends in the last half of the piece, counted from the start of the log. */
function cutOf(bytes: Uint8Array, at: number): number {
  const most = at + pieceBytes
  if (most >= bytes.length) return bytes.length
  const line = bytes.lastIndexOf(newline, most)
  return line > at ? line + 1 : startOfCharacter(bytes, most)
}

/** The window may begin within a character: the bytes that continue one are 10xxxxxx. */
function startOfCharacter(bytes: Uint8Array, wanted: number): number {
  let at = wanted
  while (at < bytes.length && at < wanted + 4 && ((bytes[at] ?? 0) & 0xc0) === 0x80) at += 1
  return at
}

function joinedBytes(first: Uint8Array, second: Uint8Array): Uint8Array {
  const joined = new Uint8Array(first.length + second.length)
  joined.set(first)
  joined.set(second, first.length)
  return joined
}
