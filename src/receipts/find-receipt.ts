/** Finds one receipt by binary search: receipts are numbered in order across all segments. */

import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { unlessMissing } from '../kit/errors.ts'
import { filesOf } from './segments.ts'

/** Returns the number in a receipt's id, or a plain number; 0 when there is none. */
export function numberOf(id: string): number {
  return Number(/(?:^|-)([1-9][0-9]{0,14})$/.exec(id)?.[1] ?? 0)
}

/** Returns the numbers in receipt ids as spans, in ascending order. */
export function spansOf(ids: readonly string[]): { readonly first: number; readonly last: number }[] {
  const spans: { first: number; last: number }[] = []
  for (const seq of ids.map(numberOf).sort((a, b) => a - b)) {
    const last = spans.at(-1)
    if (last?.last === seq - 1) last.last = seq
    else spans.push({ first: seq, last: seq })
  }
  return spans
}

/** In bytes: a range of this size or less is read completely. */
const near = 16 * 1024

/**
 * Returns the line of receipt `seq`, with only its number checked; undefined when there is none, or when the log is out of order. @throws
 * errno errors other than a missing file
 */
export function findLine(log: string, seq: number): string | undefined {
  for (const path of filesOf(log).toReversed()) {
    const file = unlessMissing(() => openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK))
    if (file === undefined) continue
    try {
      const first = ahead(file, 0, () => true)
      if (first && first.seq > seq) continue
      return first ? search(file, seq) : undefined
    } finally {
      closeSync(file)
    }
  }
}

type Numbered = { readonly text: string; readonly seq: number }

function search(file: number, seq: number): string | undefined {
  // The line starts after `low` (or at the start of the file) and not after `high`.
  let [low, high] = [0, fstatSync(file).size]
  while (high - low > near) {
    const middle = low + Math.floor((high - low) / 2)
    const found = ahead(file, middle, () => true)
    if (found && found.seq < seq) low = middle
    else if (found?.seq === seq) return found.text
    else high = middle
  }
  const found = ahead(file, low, (line) => line.seq >= seq)
  return found?.seq === seq ? found.text : undefined
}

/** Returns the first numbered line that `isWanted` accepts, from the start of the file or after the next newline. */
function ahead(file: number, position: number, isWanted: (line: Numbered) => boolean): Numbered | undefined {
  for (let length = 4096; length <= 1 << 22; length *= 4) {
    const bytes = new Uint8Array(length)
    const read = readSync(file, bytes, 0, length, position)
    const lines = new TextDecoder()
      .decode(bytes.subarray(0, read))
      .split('\n')
      .slice(position === 0 ? 0 : 1, -1)
    const found = lines.map(numbered).find((line) => line !== undefined && isWanted(line))
    if (found || read < length) return found
  }
}

/** Inside a string value every quote follows a backslash, so this matches only the member itself. */
function numbered(text: string): Numbered | undefined {
  const seq = /"seq":([1-9][0-9]{0,14}),"status":"/.exec(text)?.[1]
  return seq === undefined ? undefined : { text, seq: Number(seq) }
}
