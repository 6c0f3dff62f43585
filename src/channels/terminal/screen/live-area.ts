/** Keeps the rows of a conversation that are not final below the scrollback of the terminal; what is printed goes above them. */

import { type Overlay, type Printed, spelled } from '../printer.ts'

/** A styled row; the area cuts it at the last column. */
export type LiveRow = Printed

const parts = ['tail', 'working', 'input', 'footer'] as const
/** Drawn in this order, from top to bottom. */
export type LivePart = (typeof parts)[number]

type Place = { readonly row: number; readonly column: number }

export type LiveArea = Overlay & {
  /** Replaces the rows of one part and draws at once. The cursor stands in 'input', where `cursor` says, else after the last row. */
  set(part: LivePart, rows: readonly LiveRow[], cursor?: Place): void
  /** Replaces the rows of one part; the next draw shows them. */
  hold(part: LivePart, rows: readonly LiveRow[]): void
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

/** Every draw is one write. It assumes that a terminal which becomes narrower wraps the rows that were wider. */
export function createLiveArea({ put, size }: LiveAreaOptions): LiveArea {
  const shown = new Map<LivePart, { rows: readonly LiveRow[]; cursor?: Place | undefined }>()
  /** The widths of the drawn rows, and where the cursor stands among them; `open` is the printed line that has no newline yet. */
  const state: { widths?: readonly number[]; at: Place; frame: string; open: string; quiet: boolean; begun: boolean } = {
    at: { row: 0, column: 0 },
    frame: '',
    open: '',
    quiet: false,
    begun: false,
  }
  /** Ends what `erase` began: the terminal shows both as one change. */
  const finish = (text: string) => {
    if (text !== '' || state.begun) put(`${text}${end}`)
    state.begun = false
  }
  const measure = () => {
    const [columns, rows] = size()
    return { columns: Math.max(2, columns || 80), rows: Math.max(2, rows || 24) }
  }

  /** Moves to the first drawn row, however the terminal has wrapped the rows since. */
  const toTop = (columns: number) => {
    if (state.widths === undefined) return ''
    const above = state.widths.slice(0, state.at.row).reduce((sum, width) => sum + Math.max(1, Math.ceil(width / columns)), 0)
    return up(above + Math.floor(state.at.column / columns))
  }

  /** Clears the first drawn row and those below it. Where they are the whole screen, tmux would keep them as history if all were cleared at once. */
  const clearing = (columns: number) => {
    const isOne = (state.widths ?? []).length < 2 && (state.widths?.[0] ?? 0) <= columns
    return isOne ? '\u001b[K' : '\u001b[K\u001b[B\r\u001b[J\u001b[A'
  }

  const erase = () => {
    if (state.widths === undefined) return
    const { columns } = measure()
    const column = columnAfter(state.open, columns)
    const top = `${begin}${toTop(columns)}\r${clearing(columns)}`
    Object.assign(state, { widths: undefined, begun: true })
    // After a full row the next character belongs to the row below, where the cursor already is.
    if (column === columns) state.open = ''
    put(column === 0 || column === columns ? top : `${top}\u001b[A\u001b[${column + 1}G`)
  }

  const draw = () => {
    if (state.quiet) return
    const { columns, rows: height } = measure()
    const all = parts.flatMap((part) => shown.get(part)?.rows ?? [])
    if (all.length === 0) {
      erase()
      return finish('')
    }
    const input = shown.get('input')
    const before = parts.slice(0, parts.indexOf('input')).reduce((sum, part) => sum + (shown.get(part)?.rows.length ?? 0), 0)
    const wanted = input?.cursor && { row: before + input.cursor.row, column: input.cursor.column }
    // What does not fit is cut at the top, but the row of the cursor stays.
    const first = Math.max(0, Math.min(all.length - height + 1, wanted?.row ?? all.length))
    const rows = all.slice(first, first + Math.max(1, height - 1)).map((row) => fitRow(row, columns))
    const lead = state.widths === undefined ? (columnAfter(state.open, columns) > 0 ? '\r\n' : '') : toTop(columns)
    const last = rows.length - 1
    const clear = (at: number) => (at < last ? '\u001b[K' : last > 0 ? '\u001b[J' : clearing(columns))
    const body = rows.map(({ text }, at) => `\r${clear(at)}${text}`).join('\r\n')
    const at = wanted
      ? { row: Math.min(last, wanted.row - first), column: Math.min(wanted.column, columns - 1) }
      : { row: last, column: Math.min(rows[last]?.width ?? 0, columns - 1) }
    const frame = `${body}${up(last - at.row)}\u001b[${at.column + 1}G`
    // In a terminal of another size the same rows may have been wrapped.
    const key = `${columns} ${height} ${frame}`
    if (state.widths === undefined || key !== state.frame) finish(`${begin}${lead}${frame}`)
    Object.assign(state, { widths: rows.map(({ width }) => width), at, frame: key })
  }

  const pause = () => {
    erase()
    finish('')
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
      const words = Bun.stripANSI(text)
      const from = words.lastIndexOf('\n') + 1
      state.open = from > 0 ? words.slice(from) : state.open + words
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
      Object.assign(state, { widths: undefined, open: '', quiet: false })
      draw()
    },
    close,
  }
}

function up(rows: number): string {
  return rows > 0 ? `\u001b[${rows}A` : ''
}

/** Returns the row as the terminal gets it, at most `columns` wide, and its width. */
function fitRow(row: LiveRow, columns: number): { readonly text: string; readonly width: number } {
  const state = { width: 0 }
  const pieces = (typeof row === 'string' ? [row] : row).map((piece) => {
    if (typeof piece !== 'string') return spelled([piece])
    const words = fitWords(spelled(piece).replace(/[\n\t]/g, ' '), columns - state.width)
    state.width += Bun.stringWidth(words)
    return words
  })
  return { text: pieces.join(''), width: state.width }
}

/** Returns the beginning of the text that fits into so many columns. */
function fitWords(text: string, columns: number): string {
  if (Bun.stringWidth(text) <= columns) return text
  const state = { text: '', width: 0 }
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    const width = Bun.stringWidth(segment)
    if (state.width + width > columns) break
    state.text += segment
    state.width += width
  }
  return state.text
}

/** Returns the column after the text, as a terminal of this width wraps it: 0 to `columns`, which means that the row is full. */
function columnAfter(text: string, columns: number): number {
  if (/^[ -~]*$/.test(text)) return text === '' ? 0 : ((text.length - 1) % columns) + 1
  const state = { column: 0 }
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    if (segment === '\t') state.column = Math.min(columns - 1, (Math.floor(state.column / 8) + 1) * 8)
    else if (segment === '\r') state.column = 0
    else {
      const width = Bun.stringWidth(segment)
      state.column = state.column + width > columns ? width : state.column + width
    }
  }
  return state.column
}
