/** Keeps the rows of a conversation that are not final below the scrollback of the terminal; what is printed goes above them. */

import { type Overlay, type Printed, spelled } from '../printer.ts'
import { beginningOf } from '../status-line.ts'

const parts = ['tail', 'working', 'input', 'footer'] as const
/** Drawn in this order, from top to bottom. */
export type LivePart = (typeof parts)[number]

type Place = { readonly row: number; readonly column: number }

/** The area cuts styled rows at the last column. */
export type LiveArea = Overlay & {
  /** Replaces the rows of one part and draws at once. The cursor stands in 'input', where `cursor` says, else after the last row. */
  set(part: LivePart, rows: readonly Printed[], cursor?: Place): void
  /** Replaces the rows of one part; the next draw shows them. */
  hold(part: LivePart, rows: readonly Printed[]): void
  readonly columns: () => number
  /** Erases the rows, and draws none until `resume`, which does not expect the screen as it was. */
  pause(): void
  resume(): void
  /** Erases the rows for good. */
  close(): void
}

export type LiveAreaOptions = {
  /** Writes to the terminal without escaping. */
  readonly put: (text: string) => void
  /** Returns columns and rows; zeros where the terminal does not know them. */
  readonly size: () => readonly [columns: number, rows: number]
}

const [begin, end] = ['\u001b[?2026h', '\u001b[?2026l']

type PartRows = Map<LivePart, { readonly rows: readonly Printed[]; readonly cursor?: Place | undefined }>
/** The words of the drawn rows, and where the cursor stands among them; `open` is the printed line that has no newline yet. */
type Drawn = { drawn?: readonly string[]; at: Place; frame: string; open: string; quiet: boolean; begun: boolean }

/** Every draw is one write. It assumes that a terminal which becomes narrower wraps the rows that were wider. */
export function createLiveArea({ put, size }: LiveAreaOptions): LiveArea {
  const shown: PartRows = new Map()
  const state: Drawn = { at: { row: 0, column: 0 }, frame: '', open: '', quiet: false, begun: false }
  /** Ends what `erase` began: the terminal shows both as one change. */
  const finish = (text: string) => {
    if (text !== '' || state.begun) put(`${text}${end}`)
    state.begun = false
  }
  const measure = () => measured(size())
  const erase = () => {
    if (state.drawn === undefined) return
    const { columns } = measure()
    const { column } = endOf(state.open, columns)
    const top = `${begin}${toTop(state, columns)}\r${clearing(state, columns)}`
    Object.assign(state, { drawn: undefined, begun: true })
    // After a full row the next character belongs to the row below, where the cursor already is.
    if (column === columns) state.open = ''
    put(column === 0 || column === columns ? top : `${top}\u001b[A\u001b[${column + 1}G`)
  }

  const clear = () => {
    erase()
    finish('')
  }
  const draw = () => {
    if (state.quiet) return
    const { columns, height } = measure()
    const { rows, at } = layOut(shown, columns, height)
    if (rows.length === 0) return clear()
    const lead = state.drawn === undefined ? (endOf(state.open, columns).column > 0 ? '\r\n' : '') : toTop(state, columns)
    const last = rows.length - 1
    const clearRow = (row: number) => (row < last ? '\u001b[K' : last > 0 ? '\u001b[J' : clearing(state, columns))
    const frame = `${rows.map(({ text }, row) => `\r${clearRow(row)}${text}`).join('\r\n')}${up(last - at.row)}\u001b[${at.column + 1}G`
    // In a terminal of another size the same rows may have been wrapped.
    const key = `${columns} ${height} ${frame}`
    if (state.drawn === undefined || key !== state.frame) finish(`${begin}${lead}${frame}`)
    Object.assign(state, { drawn: rows.map(({ words }) => words), at, frame: key })
  }

  const pause = () => {
    clear()
    state.quiet = true
  }
  const close = () => {
    pause()
    process.off('exit', close)
  }
  process.once('exit', close)
  return {
    erase,
    printed(text) {
      const words = state.open + Bun.stripANSI(text)
      state.open = words.slice(words.lastIndexOf('\n') + 1)
      draw()
    },
    set(part, rows, cursor) {
      shown.set(part, { rows, cursor })
      draw()
    },
    hold: (part, rows) => void shown.set(part, { rows }),
    columns: () => measure().columns,
    pause,
    resume() {
      Object.assign(state, { drawn: undefined, open: '', quiet: false })
      draw()
    },
    close,
  }
}

function measured([columns, height]: ReturnType<LiveAreaOptions['size']>) {
  return { columns: Math.max(2, columns || 80), height: Math.max(2, height || 24) }
}

/** Returns the rows that fit, and where the cursor stands among them. What does not fit is cut at the top, but the row of the cursor stays. */
function layOut(shown: PartRows, columns: number, height: number) {
  const all = parts.flatMap((part) => shown.get(part)?.rows ?? [])
  const { cursor } = shown.get('input') ?? {}
  const before = parts.slice(0, parts.indexOf('input')).reduce((sum, part) => sum + (shown.get(part)?.rows.length ?? 0), 0)
  const wanted = cursor && before + cursor.row
  const first = Math.max(0, Math.min(all.length - height + 1, wanted ?? all.length))
  const rows = all.slice(first, first + Math.max(1, height - 1)).map((row) => fitRow(row, columns))
  const last = rows.length - 1
  const column = Math.min(cursor?.column ?? Bun.stringWidth(rows[last]?.words ?? ''), columns - 1)
  return { rows, at: { row: wanted === undefined ? last : Math.min(last, wanted - first), column } }
}

/** Moves to the first drawn row, however the terminal has wrapped the rows since. */
function toTop({ drawn, at }: Drawn, columns: number): string {
  if (drawn === undefined) return ''
  const above = drawn.slice(0, at.row).reduce((sum, words) => sum + endOf(words, columns).row + 1, 0)
  const { row, column } = endOf(beginningOf(drawn[at.row] ?? '', at.column), columns)
  return up(above + row + (column === columns ? 1 : 0))
}

/** Clears the first drawn row and those below it. Where they are the whole screen, tmux would keep them as history if all were cleared at once. */
function clearing({ drawn: [first = '', ...more] = [] }: Drawn, columns: number): string {
  return more.length === 0 && endOf(first, columns).row === 0 ? '\u001b[K' : '\u001b[K\u001b[B\r\u001b[J\u001b[A'
}

function up(rows: number): string {
  return rows > 0 ? `\u001b[${rows}A` : ''
}

/** Returns the row as the terminal gets it, at most `columns` wide, and its words alone. */
function fitRow(row: Printed, columns: number): Readonly<Record<'text' | 'words', string>> {
  const state = { words: '' }
  const pieces = (typeof row === 'string' ? [row] : row).map((piece) => {
    if (typeof piece !== 'string') return spelled([piece])
    const words = beginningOf(spelled(piece).replace(/[\n\t]/g, ' '), columns - Bun.stringWidth(state.words))
    state.words += words
    return words
  })
  return { text: pieces.join(''), words: state.words }
}

/** Returns where the text ends in a terminal that wraps it at this width; the column is 0 to `columns`, which means that the row is full. */
function endOf(text: string, columns: number): Place {
  if (text === '') return { row: 0, column: 0 }
  if (/^[ -~]*$/.test(text)) return { row: Math.floor((text.length - 1) / columns), column: ((text.length - 1) % columns) + 1 }
  const state = { row: 0, column: 0 }
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    if (segment === '\t') state.column = Math.min(columns - 1, (Math.floor(state.column / 8) + 1) * 8)
    else if (segment === '\r') state.column = 0
    else {
      const width = Bun.stringWidth(segment)
      if (state.column + width > columns) Object.assign(state, { row: state.row + 1, column: 0 })
      state.column += width
    }
  }
  return state
}
