/** Forms the unified diff of two texts: hunks of changed lines with three lines of context. */

import { type Edit, editsBetween } from './diff-lines.ts'

/** `text` is without its newline; `unended`: the last line of a file that does not end with one. */
export type HunkLine = { readonly mark: ' ' | '-' | '+'; readonly text: string; readonly unended?: true }

/** Lines are numbered from 1; for a side without lines, `start` is the line before. */
export type Hunk = {
  readonly start: number
  readonly count: number
  readonly newStart: number
  readonly newCount: number
  readonly lines: readonly HunkLine[]
}

export type TextDiff = { readonly hunks: readonly Hunk[]; readonly added: number; readonly removed: number }

const context = 3

export function diffTexts(before: string, after: string): TextDiff {
  const [lines, newLines] = [linesOf(before), linesOf(after)]
  const edits = editsBetween(lines, newLines)
  const hunks = nearby(edits).map((group) => hunkOf(group, lines, newLines))
  const sum = (size: (edit: Edit) => number) => edits.reduce((total, edit) => total + size(edit), 0)
  return { hunks, added: sum(({ newFrom, newTo }) => newTo - newFrom), removed: sum(({ from, to }) => to - from) }
}

/** Each line keeps its newline: a last line without one differs from the same line with one. */
function linesOf(text: string): readonly string[] {
  const lines: string[] = []
  for (let at = 0; at < text.length; ) {
    const newline = text.indexOf('\n', at)
    const end = newline < 0 ? text.length : newline + 1
    lines.push(text.slice(at, end))
    at = end
  }
  return lines
}

/** Groups edits whose contexts touch. */
function nearby(edits: readonly Edit[]): readonly (readonly Edit[])[] {
  const groups: Edit[][] = []
  for (const edit of edits) {
    const group = groups.at(-1)
    const last = group?.at(-1)
    if (group && last && edit.from - last.to <= 2 * context) group.push(edit)
    else groups.push([edit])
  }
  return groups
}

function hunkOf(edits: readonly Edit[], lines: readonly string[], newLines: readonly string[]): Hunk {
  const [first, last] = [edits[0], edits.at(-1)]
  const [from, to] = [Math.max(0, (first?.from ?? 0) - context), Math.min(lines.length, (last?.to ?? 0) + context)]
  const newFrom = (first?.newFrom ?? 0) - ((first?.from ?? 0) - from)
  const newTo = (last?.newTo ?? 0) + (to - (last?.to ?? 0))
  const shown: HunkLine[] = []
  let at = from
  for (const edit of edits) {
    shown.push(...lines.slice(at, edit.from).map((line) => marked(' ', line)))
    shown.push(...lines.slice(edit.from, edit.to).map((line) => marked('-', line)))
    shown.push(...newLines.slice(edit.newFrom, edit.newTo).map((line) => marked('+', line)))
    at = edit.to
  }
  shown.push(...lines.slice(at, to).map((line) => marked(' ', line)))
  const [count, newCount] = [to - from, newTo - newFrom]
  return { start: from + Math.min(1, count), count, newStart: newFrom + Math.min(1, newCount), newCount, lines: shown }
}

function marked(mark: HunkLine['mark'], line: string): HunkLine {
  return line.endsWith('\n') ? { mark, text: line.slice(0, -1) } : { mark, text: line, unended: true }
}

/** `@@ -1,4 +1,5 @@`; a count of 1 is left out. */
export function hunkHeader({ start, count, newStart, newCount }: Hunk): string {
  const range = (from: number, size: number) => (size === 1 ? `${from}` : `${from},${size}`)
  return `@@ -${range(start, count)} +${range(newStart, newCount)} @@`
}
