/** Tracks how much of an agent's file is accounted for, and reads the lines after that point: our own and those of other programs. */

import { sha256 } from '../../kit/sha256.ts'
import { type FileLine, linesOf, tailOf, withOwnFile } from './bounded-read.ts'
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
  const found = withOwnFile(path, (file, size): UnreadLines => {
    const tail = tailOf(file, size)
    if (size === mark.bytes && tail === mark.tail) return { size, tail, replaced: false, lines: [] }
    const replaced = size < mark.bytes || tailOf(file, mark.bytes) !== mark.tail
    const from = replaced ? 0 : mark.bytes
    return { size, tail, replaced, lines: size - from > longest ? undefined : [...linesOf(file, { from, to: size })] }
  })
  return found ?? { size: 0, tail: freshMark.tail, replaced: mark.bytes > 0, lines: [] }
}

/** Returns the digest of the last bytes before an offset. @throws errno errors */
export function tailAt(path: string, size: number): string {
  return withOwnFile(path, (file) => tailOf(file, size)) ?? freshMark.tail
}
