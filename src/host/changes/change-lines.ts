/** Shows a change set to a person: what happened to each path, and the changed lines, long ones folded with their counts. */

import { escapeHidden } from '../../kit/escape.ts'
import { count, grouped, visible } from '../../kit/text.ts'
import type { ChangeSet, EntryState, GitShown } from '../../runtime/changes.ts'
import { commitDiffs, type FileDiff, fileDiffs, withoutGit } from './file-diff.ts'
import { type Hunk, hunkHeader } from './hunks.ts'

/** One line without its newline; every hidden character in it is escaped. */
export type ShownLine = { readonly tone: 'header' | 'place' | 'added' | 'removed' | 'plain' | 'note'; readonly text: string }

/** How much is shown; the rest is counted. */
export type Fold = {
  readonly linesPerFile: number
  readonly lines: number
  readonly files: number
  /** Characters of one line. */
  readonly width: number
}

export const unfolded: Fold = {
  linesPerFile: Number.POSITIVE_INFINITY,
  lines: Number.POSITIVE_INFINITY,
  files: Number.POSITIVE_INFINITY,
  width: Number.POSITIVE_INFINITY,
}

/** The limits of a question, which must fit on a few screens. */
export const questionFold: Fold = { linesPerFile: 40, lines: 120, files: 40, width: 400 }

export function changeLines(diffs: readonly FileDiff[], fold: Fold): readonly ShownLine[] {
  const shown: ShownLine[] = []
  const state = { left: fold.lines }
  for (const diff of diffs.slice(0, fold.files)) {
    shown.push({ tone: 'header', text: headline(diff) })
    if (diff.difference.type !== 'text') continue
    const lines = diff.difference.diff.hunks.flatMap((hunk) => hunkLines(hunk, fold.width))
    const room = Math.min(fold.linesPerFile, state.left)
    // Three lines more are cheaper than a line that says that they are not shown.
    const shownLines = lines.length <= room + 3 ? lines : lines.slice(0, room)
    state.left = Math.max(0, state.left - shownLines.length)
    shown.push(...shownLines)
    if (shownLines.length < lines.length) shown.push(folded(lines.slice(shownLines.length), shownLines.length > 0))
  }
  if (diffs.length > fold.files) shown.push(note(`… and ${totals(diffs.slice(fold.files))}`))
  return shown
}

function folded(lines: readonly ShownLine[], begun: boolean): ShownLine {
  const number = (tone: ShownLine['tone']) => lines.filter((line) => line.tone === tone).length
  const text = `… ${count(lines.length, begun ? 'more line' : 'line')} not shown (+${grouped(number('added'))} −${grouped(number('removed'))})`
  return { tone: 'note', text }
}

/** The whole of a set: what moves in repositories in the place of git's own files, then the other files. */
export function setLines(set: ChangeSet, fold: Fold, hasTotals = true): readonly ShownLine[] {
  const { parts, others } = withoutGit(set)
  const diffs = fileDiffs(others)
  return [
    ...partLines(parts, diffs, fold),
    ...changeLines(diffs, fold),
    ...(set.notes ?? []).map(note),
    ...(hasTotals && diffs.length > 1 ? [note(totals(diffs))] : []),
  ]
}

export function totalsOf(set: ChangeSet): string {
  const { parts, others } = withoutGit(set)
  const moves = parts.length > 0 ? [`${count(parts.length, 'line')} about git`] : []
  return [...moves, ...(others.changes.length > 0 ? [totals(fileDiffs(others))] : [])].join(', ')
}

/** Files named below a commit while its difference is not shown. */
const statFiles = 6

function partLines(parts: ReturnType<GitShown['parts']>, others: readonly FileDiff[], fold: Fold): readonly ShownLine[] {
  const lines = parts.slice(0, fold.files).flatMap(({ title, set }): readonly ShownLine[] => {
    const { all, isShown } = commitDiffs(set, others)
    const head = { tone: 'header', text: `${visible(title)}${linesOf(all)}` } as const
    const line = (diff: FileDiff) => ({ tone: 'plain', text: `  ${headline(diff)}` }) as const
    if (fold.lines === Number.POSITIVE_INFINITY)
      return [head, ...all.flatMap((diff) => (isShown(diff) ? [line(diff)] : changeLines([diff], fold)))]
    const more = all.length > statFiles ? [note(`  … and ${totals(all.slice(statFiles))}`)] : []
    return [head, ...all.slice(0, statFiles).map(line), ...more]
  })
  return parts.length > fold.files ? [...lines, note(`… and ${count(parts.length - fold.files, 'more line')} about git`)] : lines
}

function note(text: string): ShownLine {
  return { tone: 'note', text }
}

/** `3 files: 1 new, 2 changed (+12 −4)`. */
export function totals(diffs: readonly FileDiff[]): string {
  const kinds = ['new', 'changed', 'renamed', 'deleted'] as const
  const parts = kinds
    .map((kind) => [kind, diffs.filter((diff) => kindOf(diff) === kind).length] as const)
    .filter(([, number]) => number > 0)
  const lines = linesOf(diffs)
  return `${count(diffs.length, 'path')}: ${parts.map(([kind, number]) => `${grouped(number)} ${kind}`).join(', ')}${lines}`
}

function linesOf(diffs: readonly FileDiff[]): string {
  const texts = diffs.flatMap(({ difference }) => (difference.type === 'text' ? [difference.diff] : []))
  if (texts.length === 0) return ''
  const sum = (side: 'added' | 'removed') => grouped(texts.reduce((total, diff) => total + diff[side], 0))
  return ` (+${sum('added')} −${sum('removed')})`
}

function kindOf({ before, after, from }: FileDiff): 'new' | 'changed' | 'renamed' | 'deleted' {
  if (from !== undefined) return 'renamed'
  if (before === undefined) return 'new'
  return after === undefined ? 'deleted' : 'changed'
}

/** `changed src/a.ts (+3 −1), mode 644 → 755`. */
export function headline(diff: FileDiff): string {
  const { path, before, after, from, difference } = diff
  const thing = thingOf(after ?? before, difference.type === 'binary')
  const name = from === undefined ? visible(path) : `${visible(from)} → ${visible(path)}`
  const target = after?.kind === 'link' ? ` → ${visible(after.target ?? '')}` : ''
  return [`${kindOf(diff)} ${thing}${name}${target}`, sizeOf(diff), modeOf(before, after)].join('')
}

function thingOf(state: EntryState | undefined, binary: boolean): string {
  if (state?.kind === 'folder') return 'folder '
  if (state?.kind === 'link') return 'link '
  if (state?.kind === 'other') return 'device, pipe or socket '
  return binary ? 'binary file ' : ''
}

function sizeOf({ before, after, difference }: FileDiff): string {
  if (difference.type === 'text') return linesOf([{ path: '', difference, changes: [] }])
  if (difference.type === 'none') return after?.kind === 'file' && after.size === 0 && !before ? ' (empty)' : ''
  const sizes = [before?.size, after?.size].filter((size) => size !== undefined).map(grouped)
  const why = difference.type === 'unseen' ? `${sizes.length > 0 ? '; ' : ''}content not shown` : ''
  return ` (${sizes.length > 0 ? `${sizes.join(' → ')} bytes` : ''}${why})`
}

/** Says permissions that changed, and those of a new file that are not the usual ones. */
function modeOf(before: EntryState | undefined, after: EntryState | undefined): string {
  if (!after || after.kind === 'link') return ''
  if (before) return before.mode === after.mode ? '' : `, mode ${octal(before.mode)} → ${octal(after.mode)}`
  const special = after.mode > 0o777 || (after.kind === 'file' && (after.mode & 0o111) !== 0)
  return special ? `, mode ${octal(after.mode)}${(after.mode & 0o111) !== 0 && after.kind === 'file' ? ' (executable)' : ''}` : ''
}

function octal(mode: number): string {
  return mode.toString(8).padStart(3, '0')
}

function hunkLines(hunk: Hunk, width: number): readonly ShownLine[] {
  const lines = hunk.lines.flatMap(({ mark, text, unended }): ShownLine[] => [
    { tone: tones[mark], text: `${mark}${shortened(escapeHidden(text), width)}` },
    ...(unended ? [{ tone: 'note', text: '\\ No newline at end of file' } as const] : []),
  ])
  return [{ tone: 'place', text: hunkHeader(hunk) }, ...lines]
}

const tones = { ' ': 'plain', '-': 'removed', '+': 'added' } as const

/** Keeps the end too, so that its text stays visible. */
function shortened(text: string, width: number): string {
  if (text.length <= width) return text
  const [head, tail] = [Math.floor(width * 0.75), Math.floor(width * 0.25)]
  return `${text.slice(0, head)} … ${count(text.length - head - tail, 'character')} not shown … ${text.slice(-tail)}`.toWellFormed()
}
