/** Holds the message that a person edits: characters as they are seen, newlines, and pastes that are shown folded. */

import { escapeHidden } from '../../../kit/escape.ts'
import { count } from '../../../kit/text.ts'

/** A character as it is seen, perhaps of several code points, or a folded paste. */
export type Cell = string | { readonly paste: string; readonly label: string }

export type EditBuffer = ReturnType<typeof createEditBuffer>

/** A paste beyond this is shown folded. */
const [longestLines, longestText] = [4, 1000]

export function createEditBuffer() {
  const segmenter = new Intl.Segmenter()
  const cellsOf = (text: string): Cell[] => Array.from(segmenter.segment(text), ({ segment }) => (segment === '\r\n' ? '\n' : segment))
  const state: { cells: Cell[]; at: number; killed: readonly Cell[]; column?: number | undefined } = { cells: [], at: 0, killed: [] }

  const isWord = (cell: Cell | undefined) => typeof cell === 'object' || (cell !== undefined && /[\p{L}\p{N}_]/u.test(cell))
  const lineStart = (from = state.at) => (from === 0 ? 0 : state.cells.lastIndexOf('\n', from - 1) + 1)
  const lineEnd = () => {
    const end = state.cells.indexOf('\n', state.at)
    return end < 0 ? state.cells.length : end
  }
  const wordLeft = () => {
    let at = state.at
    while (at > 0 && !isWord(state.cells[at - 1])) at -= 1
    while (at > 0 && isWord(state.cells[at - 1])) at -= 1
    return at
  }
  const wordRight = () => {
    let at = state.at
    while (at < state.cells.length && !isWord(state.cells[at])) at += 1
    while (at < state.cells.length && isWord(state.cells[at])) at += 1
    return at
  }
  /** A shell's Ctrl-W takes everything up to a space. */
  const spaceLeft = () => {
    let at = state.at
    while (at > 0 && /^\s$/.test(String(state.cells[at - 1]))) at -= 1
    while (at > 0 && !/^\s$/.test(String(state.cells[at - 1]))) at -= 1
    return at
  }
  const remove = (from: number, until: number, keep = true) => {
    const cut = state.cells.splice(from, until - from)
    if (keep && cut.length > 0) state.killed = cut
    state.at = from
  }
  const put = (cells: readonly Cell[]) => {
    state.cells = [...state.cells.slice(0, state.at), ...cells, ...state.cells.slice(state.at)]
    state.at += cells.length
  }
  /** Inserts text, which may continue the character before it, as a skin tone does. */
  const insert = (text: string) => {
    const before = state.cells[state.at - 1]
    const joins = typeof before === 'string' && before !== '\n' && !/^[ -~]/.test(text)
    if (joins) remove(state.at - 1, state.at, false)
    put(cellsOf(joins ? before + text : text))
  }
  const paste = (text: string) => {
    const lines = text.split('\n').length
    if (lines <= longestLines && text.length <= longestText) return put(cellsOf(text))
    put([{ paste: text, label: lines > longestLines ? `[${count(lines, 'line')}]` : `[${count(text.length, 'character')}]` }])
  }
  /** @returns false at the first or last line */
  const moveLine = (by: -1 | 1): boolean => {
    const start = lineStart()
    const column = state.column ?? state.at - start
    const [from, until] = by < 0 ? [lineStart(start - 1), start - 1] : [lineEnd() + 1, state.cells.indexOf('\n', lineEnd() + 1)]
    if (by < 0 ? start === 0 : from > state.cells.length) return false
    Object.assign(state, { at: Math.min(from + column, until < 0 ? state.cells.length : until), column })
    return true
  }

  const edits: { readonly [key: string]: () => unknown } = {
    left: () => (state.at = Math.max(0, state.at - 1)),
    right: () => (state.at = Math.min(state.cells.length, state.at + 1)),
    home: () => (state.at = lineStart()),
    end: () => (state.at = lineEnd()),
    backspace: () => state.at > 0 && remove(state.at - 1, state.at, false),
    delete: () => state.at < state.cells.length && remove(state.at, state.at + 1, false),
    newline: () => put(['\n']),
    'ctrl-k': () => remove(state.at, Math.max(lineEnd(), Math.min(state.at + 1, state.cells.length))),
    'ctrl-u': () => remove(lineStart(), state.at),
    'ctrl-w': () => remove(spaceLeft(), state.at),
    'ctrl-y': () => put(state.killed),
    'alt-b': () => (state.at = wordLeft()),
    'alt-f': () => (state.at = wordRight()),
    'alt-d': () => remove(state.at, wordRight()),
    'alt-backspace': () => remove(wordLeft(), state.at),
  }
  const same: { readonly [key: string]: string } = {
    'ctrl-a': 'home',
    'ctrl-e': 'end',
    'ctrl-b': 'left',
    'ctrl-f': 'right',
    'ctrl-left': 'alt-b',
    'ctrl-right': 'alt-f',
    'alt-left': 'alt-b',
    'alt-right': 'alt-f',
  }
  const text = (cells: readonly Cell[] = state.cells) => cells.map((cell) => (typeof cell === 'string' ? cell : cell.paste)).join('')

  return {
    insert,
    paste,
    /** @returns false when the key edits nothing */
    edit(key: string): boolean {
      const act = edits[same[key] ?? key]
      act?.()
      state.column = undefined
      return act !== undefined
    },
    moveLine,
    text,
    beforeCursor: () => text(state.cells.slice(0, state.at)),
    isEmpty: () => state.cells.length === 0,
    /** Replaces everything, and puts the cursor at the end or where `at` counts to in the text. */
    replace(words: string, at = words.length) {
      state.cells = [...cellsOf(words.slice(0, at)), ...cellsOf(words.slice(at))]
      Object.assign(state, { at: cellsOf(words.slice(0, at)).length, column: undefined })
    },
    /** Removes and returns everything, with the pastes folded as they were. */
    take(): readonly Cell[] {
      const { cells } = state
      Object.assign(state, { cells: [], at: 0, column: undefined })
      return cells
    },
    restore(cells: readonly Cell[]) {
      Object.assign(state, { cells: [...cells], at: cells.length, column: undefined })
    },
    /** Returns the rows as they are seen, with pastes folded, and where the cursor stands. */
    rows: (prompt: string, columns: number) => rowsOf(state.cells, state.at, prompt, columns),
  }
}

/** Wraps the prompt and the cells. The rows after the prompt `> ` are indented like it. */
export function rowsOf(cells: readonly Cell[], at: number, prompt: string, columns: number) {
  const indent = prompt === '> ' && columns > 8 ? '  ' : ''
  const lead = [...prompt]
  const rows = ['']
  const cursor = { row: 0, column: 0 }
  const state = { width: 0, empty: true }
  const next = () => {
    rows.push(indent)
    Object.assign(state, { width: indent.length, empty: true })
  }
  for (const [index, cell] of [...lead, ...cells, ''].entries()) {
    const shown = shownOf(cell).replaceAll('\n', '')
    const width = Bun.stringWidth(shown)
    // The last column stays free for the cursor.
    if (state.width + Math.max(1, width) > Math.max(1, columns - 1) && !state.empty) next()
    if (index === at + lead.length) Object.assign(cursor, { row: rows.length - 1, column: state.width })
    if (cell === '\n') next()
    else {
      rows[rows.length - 1] += shown
      Object.assign(state, { width: state.width + width, empty: false })
    }
  }
  return { rows, cursor }
}

/** Returns the text as it is seen: pastes are folded. */
export function foldedText(cells: readonly Cell[]): string {
  return cells.map(shownOf).join('')
}

function shownOf(cell: Cell): string {
  if (typeof cell === 'object') return cell.label
  return /^[\n -~]?$/.test(cell) ? cell : escapeHidden(cell).replaceAll('\t', '  ')
}
