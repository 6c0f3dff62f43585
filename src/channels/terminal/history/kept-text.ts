/** Writes kept change sets for a person at a terminal: the list, one set with its difference, and what undoing did. */

import { type ShownLine, setLines, unfolded } from '../../../host/changes/change-lines.ts'
import { nameOf } from '../../../host/changes/kept-changes.ts'
import { count, cut, visible } from '../../../kit/text.ts'
import type { ChangeSet } from '../../../runtime/changes.ts'
import type { Conflict, SetSummary } from '../../../workspace/changes/contract.ts'

/** `   1  run_x/call_1  applied  3 changes  2026-11-23 04:20  shell: make`. */
export function keptLines(sets: readonly SetSummary[], workspace: string): readonly string[] {
  const widest = Math.max(0, ...sets.map((set) => nameOf(set).length))
  return sets.map((set, at) => {
    const where = set.workspace === workspace ? '' : `  (in ${visible(set.workspace)})`
    const what = `${String(at + 1).padStart(4)}  ${nameOf(set).padEnd(widest)}  ${set.state.padEnd(13)}  ${count(set.count, 'change').padEnd(12)}`
    return `${what}  ${whenOf(set)}  ${whatOf(set)}${where}`
  })
}

/** The tool, and the command that it ran. */
export function whatOf({ about: { tool, command } }: Pick<SetSummary, 'about'>): string {
  return command === undefined ? visible(tool) : `${visible(tool)}: ${cut(visible(command), 80)}`
}

function whenOf({ about: { at } }: Pick<SetSummary, 'about'>): string {
  return new Date(at).toISOString().slice(0, 16).replace('T', ' ')
}

export function headingOf(set: SetSummary): string {
  const reason = set.review && set.state === 'pending' ? `\n${visible(set.review.reason)}` : ''
  return `${nameOf(set)} · ${set.state} · ${whenOf(set)} · ${whatOf(set)} · ${visible(set.workspace)}${reason}`
}

export function differenceLines(set: ChangeSet, fold = unfolded): readonly ShownLine[] {
  return setLines(set, fold)
}

/** `3 files changed since: "a.txt" was changed by someone else`. */
export function conflictLines(conflicts: readonly Conflict[]): string {
  const shown = conflicts.slice(0, 20).map(({ path, reason }) => `  ${visible(path)} ${visible(reason)}\n`)
  const more = conflicts.length - shown.length
  return `${shown.join('')}${more > 0 ? `  … and ${count(more, 'path')} more\n` : ''}`
}
