/** Finds a stored change set by the name that a person gives it, and prepares it for showing and undoing. */

import { didYouMean, quote } from '../../kit/text.ts'
import type { ChangeSet } from '../../runtime/changes.ts'
import { movedAside, type SetSummary, type ShownSet, type Side } from '../../workspace/changes/contract.ts'
import { createLook, type OpenLook } from '../../workspace/changes/look.ts'
import { showMoves } from '../../workspace/git/show-moves.ts'
import { FailureError } from '../failure.ts'

/** RUN/CALL, as the questions and receipts name a call. */
export function nameOf({ about }: Pick<SetSummary, 'about'>): string {
  return `${about.run}/${about.call}`
}

/**
 * `ref`: RUN/CALL, a run with one change set, the number of "changes list", or "last". @throws FailureError `error` when there is no such
 * set, or several
 */
export function findKept(sets: readonly SetSummary[], ref: string): SetSummary {
  if (sets.length === 0)
    throw new FailureError('error', 'no change sets are kept yet; each command and file tool that changes files leaves one')
  const bare = ref.replace(/^changes:/, '')
  const number = bare === 'last' ? 1 : /^[1-9]\d{0,6}$/.test(bare) ? Number(bare) : undefined
  const matching =
    number === undefined ? sets.filter((set) => [set.id, nameOf(set), set.about.run].includes(bare)) : sets.slice(number - 1, number)
  const [found, ...others] = matching
  if (found && others.length === 0) return found
  if (found)
    throw new FailureError(
      'error',
      `${quote(ref)} has ${matching.length} change sets: ${matching.map(nameOf).join(', ')}; name one of them`,
    )
  const near = didYouMean(bare, [...sets.map(nameOf), 'last'])
  throw new FailureError('error', `the change set ${quote(ref)} does not exist${near}; see: braidclaw changes list`)
}

/** A set that was moved aside comes back only by its own name. */
export function isForUndo({ state, about }: Pick<SetSummary, 'state' | 'about'>): boolean {
  return (state === 'applied' || state === 'partly undone') && about.tool !== movedAside
}

/** Returns the latest set that can be undone and belongs to this workspace. @throws FailureError `error` when there is none */
export function latestToUndo(sets: readonly SetSummary[], workspace: string): SetSummary {
  const undoable = sets.filter(isForUndo)
  const found = undoable.find((set) => set.workspace === workspace)
  if (found) return found
  const elsewhere = undoable[0]
  const more = elsewhere ? `; the latest elsewhere is ${nameOf(elsewhere)} in ${elsewhere.workspace}` : ''
  throw new FailureError('error', `there is nothing to undo in ${workspace}${more}`)
}

/** Returns a change set for showing. Content that is cut would look like a change, so content beyond the limit is left out. */
export function changeSetOf(shown: Pick<ShownSet, 'changes' | 'read' | 'workspace' | 'upper' | 'outside'>): ChangeSet {
  const { changes, read } = shown
  return {
    stage: 'made',
    changes,
    git: showMoves({ ...shown, open: () => pastLook(shown) }),
    content: (change, side, maxBytes) => ((change[side]?.size ?? 0) > maxBytes ? undefined : read(change.path, side, maxBytes)),
  }
}

/** Returns what undoing does: the change set with its sides swapped, without the paths that were undone already. */
export function reversed({ changes, content, git, ...set }: ChangeSet, undone: readonly string[] = []): ChangeSet {
  const turn = { before: 'after', after: 'before' } as const
  const leftOut = new Set(undone)
  return {
    ...set,
    ...(git && { git: { isOwn: git.isOwn, parts: () => git.parts().map(({ title }) => ({ title: `takes back: ${title}` })) } }),
    changes: changes
      .filter(({ path }) => !leftOut.has(path))
      .map(({ before, after, ...named }) => ({ ...named, before: after, after: before })),
    content({ before, after, ...named }, side, maxBytes) {
      return content({ ...named, before: after, after: before }, turn[side], maxBytes)
    },
  }
}

/** Looks at a change set as it was made; a path that it does not name is as it is now. */
export function pastLook({ workspace, changes, read, outside }: Pick<ShownSet, 'workspace' | 'changes' | 'read' | 'outside'>): OpenLook {
  const now = createLook({ workspace, upper: workspace, changes: [], outside })
  const byPath = new Map(changes.map((change) => [change.path, change]))
  const stateOf = (path: string, side: Side) => byPath.get(path)?.[side]

  function list(path: string, side: Side): readonly string[] | undefined {
    const own = changes.filter((change) => change.path.slice(0, Math.max(0, change.path.lastIndexOf('/'))) === path)
    const names = (there: boolean) =>
      own.flatMap((change) => ((change[side] !== undefined) === there ? [change.path.slice(change.path.lastIndexOf('/') + 1)] : []))
    const leftOut = new Set(names(false))
    if (byPath.has(path) && stateOf(path, side)?.kind !== 'folder') return undefined
    return [...new Set([...(now.list(path, side) ?? []), ...names(true)])].filter((name) => !leftOut.has(name))
  }

  return {
    read: (path, side, maxBytes) => (byPath.has(path) ? read(path, side, maxBytes) : now.read(path, side, maxBytes)),
    kind: (path, side) => (byPath.has(path) ? stateOf(path, side)?.kind : now.kind(path, side)),
    mode: (path, side) => (byPath.has(path) ? stateOf(path, side)?.mode : now.mode(path, side)),
    link: (path, side) => (byPath.has(path) ? stateOf(path, side)?.target : now.link(path, side)),
    list,
    outside,
    [Symbol.dispose]: () => now[Symbol.dispose](),
  }
}
