/** Renders a piece of Markdown, and any styled text, as rows that fit the columns. */

import { escapeHidden } from '../../../kit/escape.ts'
import type { Mark, Printed } from '../printer.ts'

type Tone = Mark['mark']
/** A piece of text and the marks that begin its style. */
export type StyledText = { readonly text: string; readonly style: readonly Tone[] }
export type StyledRow = readonly StyledText[]
export type RowLayout = { readonly columns: number; readonly color: boolean }

const ends: { readonly [tone in Tone]?: Tone } = {
  ...{ bold: 'normal', dim: 'normal', italic: 'upright', underline: 'unlined', strike: 'unstruck' },
}
const endOf = (tone: Tone) => ends[tone] ?? 'uncoloured'

/** Returns text as a terminal may get it: hidden characters are escaped, and a tab is four spaces. */
export function span(text: string, style: StyledText['style'] = []): StyledText {
  return { text: escapeHidden(text).replaceAll('\t', '    '), style }
}

/** Returns the row for the printer; without `color` the same words without marks. */
export function printedRow(row: StyledRow, { color }: RowLayout): Exclude<Printed, string> {
  return row.flatMap(({ text, style }) =>
    color ? [...style.map((mark) => ({ mark })), text, ...style.map((tone) => ({ mark: endOf(tone) }))] : [text],
  )
}

const widthOf = (text: string) => (/^[ -~]*$/.test(text) ? text.length : Bun.stringWidth(text))

/** Begins another row where one is full: between words, in code anywhere. Every row fits as long as `columns` is at least 2. */
export function fitted(row: StyledRow, columns: number, isCode = false): readonly StyledRow[] {
  const sum = (spans: StyledRow) => spans.reduce((width, { text }) => width + widthOf(text), 0)
  if (sum(row) <= columns) return [row]
  const graphemes = new Intl.Segmenter()
  const rows: StyledText[][] = []
  const state = { row: [] as StyledText[], width: 0 }
  for (const { text, style } of row)
    for (const { segment } of graphemes.segment(text)) {
      if (state.width + widthOf(segment) > columns) {
        const space = isCode || segment === ' ' ? -1 : state.row.findLastIndex((each) => each.text === ' ')
        const isBetween = state.row.slice(0, Math.max(0, space)).some((each) => each.text !== ' ')
        const rest = isBetween ? state.row.splice(space).slice(1) : []
        rows.push(state.row)
        Object.assign(state, { row: rest, width: sum(rest) })
      }
      if (segment === ' ' && !isCode && state.width === 0 && rows.length > 0) continue
      state.row.push({ text: segment, style })
      state.width += widthOf(segment)
    }
  return [...rows, state.row].map((spans) => spans.reduce<StyledText[]>(joined, []))
}

function joined(row: StyledText[], { text, style }: StyledText): StyledText[] {
  const last = row.at(-1)
  return last?.style === style ? [...row.slice(0, -1), { text: last.text + text, style }] : [...row, { text, style }]
}

/** Tells whether the line may stand below the head of a table. */
export function isDelimiter(line: string): boolean {
  return /^[ |:-]+$/.test(line)
}

/** The colours that Bun's renderer uses. */
const tones: { readonly [code: string]: Tone } = {
  ...({ 1: 'bold', 2: 'dim', 3: 'italic', 4: 'underline', 9: 'strike' } as const),
  ...({ 22: 'normal', 23: 'upright', 24: 'unlined', 29: 'unstruck' } as const),
  ...({ 31: 'red', 32: 'green', 33: 'yellow', 34: 'blue', 35: 'magenta', 36: 'cyan', 37: 'uncoloured', 39: 'uncoloured' } as const),
  ...({ '38;5;215': 'yellow', '38;5;242': 'cyan' } as const),
}

/**
 * `text` is short: the caller cuts long documents. Bun wraps it between words; line breaks stay, and so does a table with too many columns, or
 * what a page would not show, such as the definition of a link. Rows of code and of a table may be longer than `columns`.
 */
export function markdownRows(text: string, { columns }: RowLayout): readonly StyledRow[] {
  const safe = escapeHidden(text).replace(/^\n+/, '').trimEnd()
  const [head = '', second = ''] = safe.split('\n', 2)
  const cells = head.includes('|') && isDelimiter(second) ? (second.match(/-+/g) ?? []) : []
  const drawn =
    cells.length * 6 + 1 > columns
      ? ''
      : Bun.markdown.ansi(safe.replace(/\n(?=.)/g, '  \n'), { columns, colors: true }).replace(/^\n+|\n+$/g, '')
  const style = new Set<Tone>()
  return (Bun.stripANSI(drawn).trim() === '' ? Bun.wrapAnsi(safe, columns, { hard: true }) : drawn).split('\n').map((line) =>
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
    line.split(/\u001b\[([\d;]*)m/).flatMap((part, at): StyledRow => {
      if (at % 2 === 0) return part === '' ? [] : [span(part, [...style])]
      const tone = tones[part]
      if (part === '0') style.clear()
      else if (tone) for (const each of style) if (endOf(each) === tone || endOf(each) === endOf(tone)) style.delete(each)
      if (tone && !Object.values(ends).includes(tone) && tone !== 'uncoloured') style.add(tone)
      return []
    }),
  )
}
