/** One receipt of a log, found by halving it: its lines are numbered in their order, across all segments. */

import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { isMissing } from './receipt-failure.ts'
import { filesOf } from './segments.ts'

/** The number in a receipt's id, or a number as it stands; 0 when there is none. */
export function numberOf(id: string): number {
  return Number(/(?:^|-)([1-9][0-9]{0,14})$/.exec(id)?.[1] ?? 0)
}

/** Below this the rest is read through. */
const near = 16 * 1024

/**
 * The line of receipt `seq`, nothing about it checked but its number; undefined when there is none, or when the log is not in order.
 * @throws errno errors other than a missing file
 */
export function findLine(log: string, seq: number): string | undefined {
  for (const path of filesOf(log).toReversed()) {
    const file = openIfThere(path)
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
  // The line begins behind `low`, or with the file, and no later than `high`.
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

/** The first numbered line from here on that is wanted: at the beginning of the file, or behind the next newline. */
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

/** In a text of the receipt every quote has a backslash before it: this is the member itself. */
function numbered(text: string): Numbered | undefined {
  const seq = /"seq":([1-9][0-9]{0,14}),"status":"/.exec(text)?.[1]
  return seq === undefined ? undefined : { text, seq: Number(seq) }
}

function openIfThere(path: string): number | undefined {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}
