/** Describes a change set in one line for people: "4 files: 2 changed, 1 new, 1 deleted: src/a.ts, …". */

import { count, cut, grouped, visible } from '../../kit/text.ts'
import type { Change, EntryState } from '../../runtime/changes.ts'
import { type GitMoves, isOwnOfGit, tellMoves } from './git-moves.ts'

type Kind = 'changed' | 'new' | 'deleted' | 'renamed' | 'mode changed' | 'touched' | 'left out'

/** One line of a summary or a diff; `from` is the old name of a renamed file. */
export type ShownChange = { readonly kind: Kind; readonly path: string; readonly from?: string; readonly isFolder: boolean }

const pathsShown = 6

/** The summary names moves in repositories instead of git's own files. */
export function summariseChanges(changes: readonly Change[], git: GitMoves = []): string {
  if (changes.length === 0) return 'nothing changed'
  const moves = tellMoves(git).map(({ title }) => title)
  const rest = changes.filter(({ path }) => !isOwnOfGit(path, git))
  const more = moves.length > movesShown ? [`and ${count(moves.length - movesShown, 'more move')}`] : []
  const own = moves.length === 0 && rest.length === 0 ? [`${count(changes.length, 'path')} of git's own`] : []
  return cut(visible([...moves.slice(0, movesShown), ...more, ...own, ...(rest.length > 0 ? [summaryOf(rest)] : [])].join('; ')), 600)
}

const movesShown = 4

function summaryOf(changes: readonly Change[]): string {
  const shown = describeChanges(changes)
  const files = shown.filter(({ isFolder }) => !isFolder)
  const told = files.length > 0 ? files : shown
  const noun = files.length > 0 ? 'file' : 'folder'
  const paths = told.slice(0, pathsShown).map(({ path, from }) => (from === undefined ? path : `${from} → ${path}`))
  const more = told.length > pathsShown ? ', …' : ''
  return `${count(told.length, noun)}: ${kinds(told)}: ${paths.join(', ')}${more}`
}

function kinds(shown: readonly ShownChange[]): string {
  const numbers = new Map<Kind, number>()
  for (const { kind } of shown) numbers.set(kind, (numbers.get(kind) ?? 0) + 1)
  return [...numbers].map(([kind, number]) => `${grouped(number)} ${kind}`).join(', ')
}

/** A deleted and a new file with the same content are one renamed file; everything else stays one entry per change, in order. */
export function describeChanges(changes: readonly Change[]): readonly ShownChange[] {
  const gone = deletedByContent(changes)
  const renamed = new Map<string, string>()
  for (const { path, before, after } of changes) {
    const from = before === undefined && isContent(after) ? gone.get(after.sha256)?.shift() : undefined
    if (from !== undefined) renamed.set(path, from)
  }
  const old = new Set(renamed.values())
  return changes.flatMap((change) => {
    if (change.after === undefined && old.has(change.path)) return []
    const from = change.before === undefined ? renamed.get(change.path) : undefined
    const isFolder = (change.after ?? change.before)?.kind === 'folder'
    return [{ path: change.path, isFolder, ...(from === undefined ? { kind: kindOf(change) } : { kind: 'renamed' as const, from }) }]
  })
}

type Content = EntryState & { readonly sha256: string }

/** All empty files are alike, so an empty one is not taken for another one renamed. */
function isContent(state: EntryState | undefined): state is Content {
  return state?.kind === 'file' && state.sha256 !== undefined && state.size !== 0
}

function deletedByContent(changes: readonly Change[]): Map<string, string[]> {
  const gone = new Map<string, string[]>()
  for (const { path, before, after } of changes) {
    if (after !== undefined || !isContent(before)) continue
    const paths = gone.get(before.sha256)
    if (paths === undefined) gone.set(before.sha256, [path])
    else paths.push(path)
  }
  return gone
}

function kindOf({ before, after }: Change): Kind {
  if (after === undefined) return 'deleted'
  if (after.kind === 'other') return 'left out'
  if (before === undefined) return 'new'
  if (before.kind !== after.kind || before.size !== after.size || before.target !== after.target) return 'changed'
  if (after.kind === 'file' && (before.sha256 === undefined || before.sha256 !== after.sha256)) return 'changed'
  return before.mode === after.mode ? 'touched' : 'mode changed'
}
