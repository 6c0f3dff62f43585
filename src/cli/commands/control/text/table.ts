/** Aligns rows of text in columns that fit the width of a terminal; everything from outside is made visible first. */

import { flat, visible } from '../../../../kit/text.ts'

/** Where a terminal does not say how wide it is. */
const usualWidth = 80
const gap = '  '

export type TableOptions = {
  readonly heads?: readonly string[]
  /** The columns that hold numbers, from 0: aligned at the right. */
  readonly right?: readonly number[]
  readonly width?: number
  /** The most columns of a cell that is not the last of its row (default 24). */
  readonly most?: number
}

/**
 * Returns one line a row, without newlines at their ends. The last column receives the room that the others leave and is cut with "…"; it
 * keeps at least 12 characters.
 */
export function table(
  rows: readonly (readonly string[])[],
  { heads, right = [], width = usualWidth, most = 24 }: TableOptions = {},
): string[] {
  const cells = [...(heads ? [heads] : []), ...rows].map((row) =>
    row.map((text, column) => (column === row.length - 1 ? oneLine(text) : shortened(oneLine(text), most))),
  )
  const last = Math.max(0, ...cells.map((row) => row.length - 1))
  const widths = Array.from({ length: last + 1 }, (_, column) => Math.max(0, ...cells.map((row) => Bun.stringWidth(row[column] ?? ''))))
  const room = Math.max(12, width - widths.slice(0, last).reduce((sum, each) => sum + each + gap.length, 0))
  return cells.map((row) =>
    row
      .map((text, column) => placed(text, { column, last, widths, right, room }))
      .join(gap)
      .trimEnd(),
  )
}

type Place = {
  readonly column: number
  readonly last: number
  readonly widths: readonly number[]
  readonly right: readonly number[]
  readonly room: number
}

function placed(text: string, { column, last, widths, right, room }: Place): string {
  if (column === last && !right.includes(column)) return shortened(text, room)
  const space = ' '.repeat(Math.max(0, (widths[column] ?? 0) - Bun.stringWidth(text)))
  return right.includes(column) ? space + text : text + space
}

/** Returns text from outside on one line, with invisible characters spelled. */
export function oneLine(text: string): string {
  return visible(flat(text).trim())
}

/** Cuts text to so many columns of a terminal; "…" says that something is missing. */
export function shortened(text: string, columns: number): string {
  if (Bun.stringWidth(text) <= columns) return text
  let [kept, used] = ['', 0]
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    used += Bun.stringWidth(segment)
    if (used > columns - 1) break
    kept += segment
  }
  return `${kept}…`
}

/** Returns `label  value` lines, aligned; a row without a value is left out, and a value of several lines is indented. */
export function record(rows: readonly (readonly [label: string, value: string | null | undefined])[]): string {
  const shown = rows.filter((row): row is readonly [string, string] => row[1] !== undefined && row[1] !== null && row[1] !== '')
  const column = Math.max(0, ...shown.map(([label]) => label.length)) + gap.length
  return shown.map(([label, value]) => `${label.padEnd(column)}${value.replaceAll('\n', `\n${' '.repeat(column)}`)}\n`).join('')
}
