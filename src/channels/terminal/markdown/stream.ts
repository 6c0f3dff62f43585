/** Renders Markdown while it arrives: rows that are final are given out once, the unfinished end as often as it is asked for. */

import { type Code, codeIn, codeRows, colouredFences } from './code.ts'
import { fitted, isDelimiter, markdownRows, printedRow, type RowLayout, type StyledRow, span } from './rows.ts'

/** Longer lines and blocks are cut, so that the unfinished end stays short, whatever arrives. */
const longest = 16_384

/**
 * Holds all that is known before the line that is not complete. A block is a paragraph, one item of a list with what is nested in it, a quote, a table.
 * `content`: where the text of an item begins. `head`: the head of a cut table, which its next rows have again. `number`: of the last item.
 */
type State = {
  kind?: 'plain' | 'item' | 'quote' | undefined
  text: string
  content: number
  head: string
  isBlankLast: boolean
  number?: number | undefined
  fence?: (Code & { readonly mark: string; readonly indent: number }) | undefined
  hasGap: boolean
  hasRows: boolean
}
const nothing: State = { text: '', content: 0, head: '', isBlankLast: false, hasGap: false, hasRows: false }

type PrintedRow = ReturnType<typeof printedRow>

/** Creates a renderer whose final rows do not depend on how the text was cut into pieces. */
export function createMarkdown(page: () => RowLayout) {
  const open: { state: State; line: string } = { state: { ...nothing }, line: '' }
  const rest = (state: State): readonly PrintedRow[] => {
    const rows = open.line === '' ? [] : take(state, open.line, page())
    return [...rows, ...flush(state, page())].map((row) => printedRow(row, page()))
  }
  return {
    /** @returns the rows that have become final */
    push(piece: string): readonly PrintedRow[] {
      const rows: StyledRow[] = []
      const parts = piece.split('\n')
      for (const [at, part] of parts.entries()) {
        open.line += part
        while (open.line.length > longest) {
          const end = cutAt(open.line)
          rows.push(...take(open.state, open.line.slice(0, end), page()))
          open.line = open.line.slice(end)
        }
        if (at === parts.length - 1) continue
        rows.push(...take(open.state, open.line.replace(/\r$/, ''), page()))
        open.line = ''
      }
      return rows.map((row) => printedRow(row, page()))
    },
    /** Returns the rows of what is not final yet. */
    tail: (): readonly PrintedRow[] => rest({ ...open.state }),
    /** Returns the last rows; the next piece begins a new document. */
    end(): readonly PrintedRow[] {
      const rows = rest(open.state)
      Object.assign(open, { state: { ...nothing }, line: '' })
      return rows
    },
  }
}

function cutAt(line: string): number {
  const end = line.lastIndexOf(' ', longest) + 1 || longest
  return /[\ud800-\udbff]/.test(line.charAt(end - 1)) ? end - 1 : end
}

const fenceOf = (line: string) => /^( {0,3})(`{3,}(?=[^`]*$)|~{3,})\s*([^\s`]*)/.exec(line)
const itemOf = (line: string) => /^ {0,3}(?:[-*+]|(\d{1,9})[.)])(?: {1,4}(?=\S)| (?= )|\t| *$)/.exec(line)
const isHeading = (line: string) => /^ {0,3}#{1,6}(?:\s|$)/.test(line)
const isRule = (line: string) => /^ {0,3}(?:(?:\* *){3,}|(?:- *){3,}|(?:_ *){3,})$/.test(line)
const isUnderline = (line: string) => /^ {0,3}(?:=+|-+) *$/.test(line)
const indentOf = (line: string) => (/^\s*/.exec(line)?.[0] ?? '').replaceAll('\t', '    ').length

/** Takes one line. @returns the rows that are final by it */
function take(state: State, line: string, page: RowLayout): readonly StyledRow[] {
  if (state.fence) return takeCode(state, state.fence, line, page)
  if (line.trim() === '') {
    if (!state.kind) state.hasGap = true
    else Object.assign(state, { text: state.text.length > longest ? state.text : `${state.text}\n`, isBlankLast: true })
    return []
  }
  const rows = state.kind && begins(state, state.kind, line) ? flush(state, page) : []
  const [, indent, mark, language] = state.kind ? [] : (fenceOf(line) ?? [])
  if (mark !== undefined) {
    Object.assign(state, { fence: { ...codeIn(language ?? ''), mark, indent: indent?.length }, number: undefined })
    return [...rows, ...gap(state), ...fitted([span(line.trim(), ['dim'])], page.columns)]
  }
  const isEnd = state.kind === 'plain' ? isUnderline(line) : !state.kind && (isHeading(line) || isRule(line))
  if (state.kind) Object.assign(state, { text: `${state.text}\n${line}`, isBlankLast: false })
  else beginBlock(state, line)
  if (!isEnd && state.text.length <= longest) return rows
  const [first, second = '', next] = isEnd ? [] : state.text.split('\n', 3)
  const head = next !== undefined && isDelimiter(second) && second.includes('|') ? `${first}\n${second}` : undefined
  const cut = flush(state, page)
  if (head && head.length < longest / 2) Object.assign(state, { kind: 'plain', text: head, head })
  return [...rows, ...cut]
}

function takeCode(state: State, fence: NonNullable<State['fence']>, line: string, { columns }: RowLayout): readonly StyledRow[] {
  const text = line.trim()
  if (text.startsWith(fence.mark) && text === fence.mark.charAt(0).repeat(text.length) && indentOf(line) < 4) {
    state.fence = undefined
    return fitted([span(text, ['dim'])], columns)
  }
  const [rows, inside] = codeRows(line.slice(Math.min(fence.indent, indentOf(line))), fence, columns)
  state.fence = { ...fence, inside }
  return rows
}

/** Every item is parsed for itself, so that its number has to follow the one before. */
function beginBlock(state: State, line: string): void {
  const [mark, digits] = (isRule(line) ? null : itemOf(line)) ?? []
  const number = digits === undefined ? undefined : (state.number ?? Number(digits) - 1) + 1
  const text = digits === undefined ? line : line.replace(digits, String(number))
  const kind = mark !== undefined ? 'item' : /^ {0,3}>/.test(line) ? 'quote' : 'plain'
  Object.assign(state, { kind, text, number, content: mark?.length ?? 0, isBlankLast: false })
}

/** Tells whether the line begins another block than the one that is open. */
function begins({ content, isBlankLast, text }: State, kind: 'plain' | 'item' | 'quote', line: string): boolean {
  const indent = indentOf(line)
  if (kind === 'item' && indent >= content) return false
  if (isBlankLast) return kind !== 'plain' || indent < 4 || indentOf(text) < 4
  if (isHeading(line) || fenceOf(line)) return true
  if (isRule(line)) return kind !== 'plain' || !isUnderline(line)
  const item = itemOf(line)
  if (item) return kind === 'item' || ((item[1] ?? '1') === '1' && item[0].length < line.length)
  return /^ {0,3}>/.test(line) && kind !== 'quote'
}

function flush(state: State, page: RowLayout): readonly StyledRow[] {
  const { kind, text, head, isBlankLast } = state
  if (!kind) return []
  const { columns } = page
  const fitting = () => colouredFences(markdownRows(text, page), columns).flatMap((row) => fitted(row, columns))
  const rows = text === head ? [] : [...gap(state), ...fitting()]
  Object.assign(state, { kind: undefined, text: '', head: '', hasGap: isBlankLast, isBlankLast: false })
  return rows
}

/** Returns the blank row between two blocks that have a blank line between them in the text. */
function gap(state: State): readonly StyledRow[] {
  const rows = state.hasGap && state.hasRows ? [[]] : []
  Object.assign(state, { hasGap: false, hasRows: true })
  return rows
}
