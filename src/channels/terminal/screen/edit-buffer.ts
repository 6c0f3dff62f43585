/** Holds the message that a person edits: characters as they are seen, newlines, and pastes that are shown folded. */

import { escapeHidden } from '../../../kit/escape.ts'
import { count } from '../../../kit/text.ts'

/** A character as it is seen, perhaps of several code points, or a folded paste. */
export type Cell = string | { readonly paste: string; readonly label: string }

export type EditBuffer = ReturnType<typeof createEditBuffer>

/** A paste beyond this is shown folded. */
const [longestLines, longestText] = [4, 1000]

type State = { cells: Cell[]; at: number; killed: readonly Cell[]; column?: number | undefined }

export function createEditBuffer() {
  const state: State = { cells: [], at: 0, killed: [] }
  return {
    /** Inserts text, which may continue the character before it, as a skin tone does. */
    insert(text: string) {
      const before = state.cells[state.at - 1]
      const joins = typeof before === 'string' && before !== '\n' && !/^[ -~]/.test(text)
      if (joins) remove(state, state.at - 1, state.at, false)
      put(state, cellsOf(joins ? before + text : text))
    },
    paste(text: string) {
      const lines = text.split('\n').length
      if (lines <= longestLines && text.length <= longestText) return put(state, cellsOf(text))
      put(state, [{ paste: text, label: `[${lines > longestLines ? count(lines, 'line') : count(text.length, 'character')}]` }])
    },
    /** @returns false when the key edits nothing */
    edit(key: string): boolean {
      const act = edits[same[key] ?? key]
      act?.(state)
      state.column = undefined
      return act !== undefined
    },
    /** @returns false at the first or last line */
    moveLine(by: -1 | 1): boolean {
      const start = lineStart(state)
      const after = lineEnd(state) + 1
      const column = state.column ?? state.at - start
      const [from, until] = by < 0 ? [lineStart(state, start - 1), start - 1] : [after, state.cells.indexOf('\n', after)]
      if (by < 0 ? start === 0 : from > state.cells.length) return false
      Object.assign(state, { at: Math.min(from + column, until < 0 ? state.cells.length : until), column })
      return true
    },
    text: () => textOf(state.cells),
    beforeCursor: () => textOf(state.cells.slice(0, state.at)),
    isEmpty: () => state.cells.length === 0,
    /** Replaces everything, and puts the cursor at the end or where `at` counts to in the text. */
    replace(words: string, at = words.length) {
      const before = cellsOf(words.slice(0, at))
      Object.assign(state, { cells: [...before, ...cellsOf(words.slice(at))], at: before.length, column: undefined })
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

const edits: { readonly [key: string]: (state: State) => unknown } = {
  left: (state) => (state.at = Math.max(0, state.at - 1)),
  right: (state) => (state.at = Math.min(state.cells.length, state.at + 1)),
  home: (state) => (state.at = lineStart(state)),
  end: (state) => (state.at = lineEnd(state)),
  backspace: (state) => state.at > 0 && remove(state, state.at - 1, state.at, false),
  delete: (state) => remove(state, state.at, state.at + 1, false),
  newline: (state) => put(state, ['\n']),
  'ctrl-k': (state) => remove(state, state.at, Math.max(lineEnd(state), state.at + 1)),
  'ctrl-u': (state) => remove(state, lineStart(state), state.at),
  // A shell's Ctrl-W takes everything up to a space.
  'ctrl-w': (state) => remove(state, leftOf(state, isNoSpace), state.at),
  'ctrl-y': (state) => put(state, state.killed),
  'alt-b': (state) => (state.at = leftOf(state, isWord)),
  'alt-f': (state) => (state.at = wordRight(state)),
  'alt-d': (state) => remove(state, state.at, wordRight(state)),
  'alt-backspace': (state) => remove(state, leftOf(state, isWord), state.at),
}
const same: { readonly [key: string]: string } = {
  ...{ 'ctrl-a': 'home', 'ctrl-e': 'end', 'ctrl-b': 'left', 'ctrl-f': 'right' },
  ...{ 'ctrl-left': 'alt-b', 'ctrl-right': 'alt-f', 'alt-left': 'alt-b', 'alt-right': 'alt-f' },
}

function cellsOf(text: string): Cell[] {
  return Array.from(new Intl.Segmenter().segment(text), ({ segment }) => (segment === '\r\n' ? '\n' : segment))
}

function isWord(cell: Cell | undefined): boolean {
  return typeof cell === 'object' || (cell !== undefined && /[\p{L}\p{N}_]/u.test(cell))
}

function isNoSpace(cell: Cell | undefined): boolean {
  return !/^\s$/.test(String(cell))
}

function lineStart({ cells, at }: State, from = at): number {
  return from === 0 ? 0 : cells.lastIndexOf('\n', from - 1) + 1
}

function lineEnd({ cells, at }: State): number {
  const end = cells.indexOf('\n', at)
  return end < 0 ? cells.length : end
}

/** Returns where the nearest run of such cells before the cursor begins. */
function leftOf({ cells, at: from }: State, isPart: (cell: Cell | undefined) => boolean): number {
  let at = from
  while (at > 0 && !isPart(cells[at - 1])) at -= 1
  while (at > 0 && isPart(cells[at - 1])) at -= 1
  return at
}

function wordRight({ cells, at: from }: State): number {
  let at = from
  while (at < cells.length && !isWord(cells[at])) at += 1
  while (at < cells.length && isWord(cells[at])) at += 1
  return at
}

function remove(state: State, from: number, until: number, keep = true): void {
  const cut = state.cells.splice(from, until - from)
  if (keep && cut.length > 0) state.killed = cut
  state.at = from
}

function put(state: State, cells: readonly Cell[]): void {
  state.cells = [...state.cells.slice(0, state.at), ...cells, ...state.cells.slice(state.at)]
  state.at += cells.length
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

/** Returns the text with its pastes in full. */
export function textOf(cells: readonly Cell[]): string {
  return cells.map((cell) => (typeof cell === 'string' ? cell : cell.paste)).join('')
}

/** Returns the text as it is seen: pastes are folded. */
export function foldedText(cells: readonly Cell[]): string {
  return cells.map(shownOf).join('')
}

function shownOf(cell: Cell): string {
  if (typeof cell === 'object') return cell.label
  return /^[\n -~]?$/.test(cell) ? cell : escapeHidden(cell).replaceAll('\t', '  ')
}
