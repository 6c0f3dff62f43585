/** Looks at the workspace before and after the changes of a command, without following links, so that the changes can be judged. */

import { lstatSync, readdirSync } from 'node:fs'
import { attempt } from '../../kit/errors.ts'
import { memo } from '../../kit/lazy.ts'
import type { Change, OutsideGit } from '../../runtime/changes.ts'
import { placeOf } from '../../security/changes/change-view.ts'
import type { Look, PathMark, Side } from '../../security/changes/review-context.ts'
import { flags, hold, slot } from '../descriptor.ts'
import { folderOf, lastOf, namesOf, type RawName, rawName } from './tree/entry.ts'
import { gitBeside, gitInPlace, linkTextAt, openTree, startAt, type Tree } from './tree/tree.ts'

/** The permission bits of `mode` include set-user-ID, set-group-ID and sticky. */
export type OpenLook = Disposable & Required<Omit<Look, 'mark' | 'outside'>> & Pick<Look, 'mark' | 'outside'>

/** The paths that a judgement read in the workspace, present or absent, each with a stamp. */
export type ReadSet = ReadonlyMap<string, string>

/** Also returns which paths were read so far. */
export type RecordingLook = OpenLook & { readSet(): ReadSet }

export type Looking = {
  readonly workspace: string
  /** The folder that holds what the command wrote. */
  readonly upper: string
  readonly changes: readonly Change[]
  /** Lies beside the workspace, and what the command wrote there beside `upper`. */
  readonly outside?: OutsideGit | undefined
}

/** Tells whether none of the paths that were read has changed. Takes some microseconds a folder. */
export function isAsSeen(readSet: ReadSet, workspace: string): boolean {
  for (const [path, stamp] of readSet) if (stampOf(placeOf(workspace, path)) !== stamp) return false
  return true
}

/** The clock of a file system may stand still for this long, so a change right after a read may leave no trace. */
const COARSE_NS = 20_000_000n

/**
 * Returns a stamp that differs after every change: a new or deleted name changes the time of its folder, and a fresh change never compares
 * equal.
 */
function stampOf(path: string): string {
  return markOf(path).stamp
}

function markOf(path: string): PathMark {
  try {
    const stat = lstatSync(path, { bigint: true, throwIfNoEntry: false })
    if (stat === undefined) return { stamp: '-' }
    const isFresh = BigInt(Date.now()) * 1_000_000n - stat.ctimeNs < COARSE_NS
    const kind = stat.isFile() ? 'file' : stat.isDirectory() ? 'folder' : stat.isSymbolicLink() ? 'link' : 'other'
    return { kind, stamp: isFresh ? crypto.randomUUID() : `${stat.dev}:${stat.ino}:${stat.ctimeNs}` }
  } catch {
    return { stamp: '-' }
  }
}

/** @throws the system's error when one of the two folders is gone */
export function createLook({ workspace, upper, changes, outside }: Looking): RecordingLook {
  const seen = new Map<string, string>()
  const note = (path: string) => {
    if (!seen.has(path)) seen.set(path, stampOf(placeOf(workspace, path)))
    return path
  }
  const before = openTree({ root: workspace, asItIs: true, outside: gitInPlace(outside) })
  const trees = {
    before,
    after: upper === workspace ? before : openTree({ root: upper, asItIs: true, outside: gitBeside(upper, outside) }),
  }
  const byPath = new Map(changes.map((change) => [change.path, change]))
  const mark = memo((path): PathMark | undefined => {
    const folder = folderOf(path)
    if (path.startsWith('/') || byPath.has(path) || (folder !== '' && mark(folder)?.kind !== 'folder')) return undefined
    const found = markOf(placeOf(workspace, path))
    if (!seen.has(path)) seen.set(path, found.stamp)
    return found
  })
  const below = Map.groupBy(changes, ({ path }) => folderOf(path))

  /** Everything that exists after the changes and belongs to them lies in the upper layer; everything else is as it was. */
  function at<T>(path: string, side: Side, use: (tree: Tree, raw: RawName) => T): T | undefined {
    const change = byPath.get(path)
    if (change !== undefined && change[side] === undefined) return undefined
    const isWorkspace = change === undefined || side === 'before'
    const tree = trees[isWorkspace ? 'before' : 'after']
    if (isWorkspace) note(folderOf(path))
    return attempt(() => {
      tree.betweenSteps()
      return use(tree, rawName(change ?? { path }))
    })
  }

  return {
    outside,
    read: (path, side, maxBytes) =>
      at(note(path), side, (tree, raw) => {
        if (tree.lstat(raw)?.kind !== 'file') return undefined
        return startAt({ folder: tree.folder(folderOf(raw)), name: lastOf(raw) }, maxBytes)
      }),
    kind: (path, side) => (path === '' || path === outside?.common ? 'folder' : at(path, side, (tree, raw) => tree.lstat(raw)?.kind)),
    mark,
    mode: (path, side) => at(note(path), side, (tree, raw) => tree.lstat(raw)?.mode),
    link: (path, side) => at(note(path), side, (tree, raw) => linkTextAt({ folder: tree.folder(folderOf(raw)), name: lastOf(raw) })),
    list(path, side) {
      const before = at(note(path), 'before', (tree, raw) => namesIn(tree, raw))
      if (side === 'before') return before
      const change = byPath.get(path)
      if (change === undefined ? before === undefined : change.after?.kind !== 'folder') return undefined
      const own = below.get(path) ?? []
      const deleted = new Set(own.filter(({ after }) => after === undefined).map(({ path }) => lastOf(path)))
      const made = own.filter(({ after }) => after !== undefined).map(({ path }) => lastOf(path))
      const remaining = before?.filter((name) => !deleted.has(name)) ?? []
      return [...new Set([...remaining, ...made])]
    },
    readSet: () => seen,
    [Symbol.dispose]() {
      for (const tree of new Set(Object.values(trees))) tree[Symbol.dispose]()
    },
  }
}

function namesIn(tree: Tree, raw: RawName): readonly string[] {
  using folder = hold(slot(tree.folder(raw), '.'), flags.syncFolder)
  return readdirSync(slot(folder), { encoding: 'buffer' }).map((name) => namesOf(name.toString('latin1')).path)
}
