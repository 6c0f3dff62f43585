/** Aligns rows of text in columns that fit the width of a terminal, if there is one; everything from outside is made visible first. */

import { flat, visible } from '../../../../kit/text.ts'

const gap = '  '

export type TableOptions = {
  readonly heads?: readonly string[]
  /** The columns that hold numbers, from 0: aligned at the right. */
  readonly right?: readonly number[]
  /** The columns of the terminal. Absent: stdout is not a terminal, so nothing is left out or cut. */
  readonly width?: number
  /** The most columns of a cell that is not the last of its row (default 24). */
  readonly most?: number
  /** The columns that are left out where the terminal is too narrow, the least important first: never ids and states. */
  readonly drop?: readonly number[]
  /** The columns that are never cut: ids and states (default: the first). */
  readonly keep?: readonly number[]
}

type Grid = { readonly cells: readonly (readonly string[])[]; readonly columns: readonly number[] }

/** Returns one line a row, without newlines at their ends. The last column receives the room that the others leave and is cut with "…". */
export function table(rows: readonly (readonly string[])[], options: TableOptions = {}): string[] {
  const { heads, right = [], width } = options
  const cells = [...(heads ? [heads] : []), ...rows].map((row) => row.map(oneLine))
  const all = Array.from({ length: Math.max(0, ...cells.map((row) => row.length)) }, (_, column) => column)
  const { columns, widths } = width === undefined ? unlimited(cells, all) : fitted({ cells, columns: all }, { ...options, width })
  return cells.map((row) =>
    columns
      .filter((column) => column < row.length)
      .map((column, at) => {
        const isLast = at === columns.length - 1
        return placed(row[column] ?? '', { columns: widths.get(column) ?? 0, isRight: right.includes(column), isLast })
      })
      .join(gap)
      .trimEnd(),
  )
}

type ShownColumns = { readonly columns: readonly number[]; readonly widths: ReadonlyMap<number, number> }

function unlimited(cells: Grid['cells'], columns: readonly number[]): ShownColumns {
  return { columns, widths: new Map(columns.map((column) => [column, widest(cells, column)])) }
}

/** The last column keeps so much before others are left out, and any column at least so much. */
const [leastOfLast, least] = [12, 4]

function fitted(
  { cells, columns: all }: Grid,
  { width, most = 24, drop = [], keep = [0], right = [] }: TableOptions & { width: number },
): ShownColumns {
  const last = all.at(-1)
  const natural = (column: number) => widest(cells, column)
  // A number that is cut is another number.
  const isWhole = (column: number) => keep.includes(column) || right.includes(column)
  const needed = (column: number) => {
    if (isWhole(column)) return natural(column)
    return Math.min(natural(column), column === last ? leastOfLast : most)
  }
  let columns = all
  const need = () => columns.reduce((sum, column) => sum + needed(column) + gap.length, -gap.length)
  for (const column of drop) if (need() > width) columns = columns.filter((each) => each !== column)
  const widths = new Map(columns.map((column) => [column, needed(column)]))
  const room = () => width - [...widths.values()].reduce((sum, each) => sum + each + gap.length, -gap.length)
  for (const column of columns) if (room() < 0 && !isWhole(column)) widths.set(column, Math.max(least, (widths.get(column) ?? 0) + room()))
  const rest = columns.at(-1)
  if (rest !== undefined && !isWhole(rest)) widths.set(rest, Math.max(least, Math.min(natural(rest), (widths.get(rest) ?? 0) + room())))
  return { columns, widths }
}

function widest(cells: Grid['cells'], column: number): number {
  return Math.max(0, ...cells.map((row) => Bun.stringWidth(row[column] ?? '')))
}

function placed(text: string, { columns, isRight, isLast }: { columns: number; isRight: boolean; isLast: boolean }): string {
  const shown = shortened(text, columns)
  const space = ' '.repeat(Math.max(0, columns - Bun.stringWidth(shown)))
  if (isRight) return space + shown
  return isLast ? shown : shown + space
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
