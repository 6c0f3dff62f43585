/** Looks at the workspace before and after the changes of a command, without following links, so that the changes can be judged. */

import { lstatSync, readdirSync } from 'node:fs'
import type { Change, EntryState } from '../../runtime/changes.ts'
import { flags, hold, slot } from '../descriptor.ts'
import { folderOf, lastOf, namesOf, type RawName, rawName } from './tree/entry.ts'
import { linkTextAt, openTree, startAt, type Tree } from './tree/tree.ts'

export type Side = 'before' | 'after'

/** Paths are relative to the workspace, '' is the workspace itself; undefined is what is missing or cannot be looked at. Never throws. */
export type Look = Disposable & {
  /** @returns the first `maxBytes` of a regular file */
  read(path: string, side: Side, maxBytes: number): Uint8Array | undefined
  kind(path: string, side: Side): EntryState['kind'] | undefined
  /** @returns the permission bits with set-user-ID, set-group-ID and sticky */
  mode(path: string, side: Side): number | undefined
  /** @returns what a symbolic link contains, unresolved */
  link(path: string, side: Side): string | undefined
  /** @returns the names in a folder */
  list(path: string, side: Side): readonly string[] | undefined
}

/** The paths that a judgement looked at in the workspace, present or absent, each with a stamp. */
export type ReadSet = ReadonlyMap<string, string>

/** Also tells what was looked at until now. */
export type RecordingLook = Look & { readSet(): ReadSet }

export type Looking = {
  readonly workspace: string
  /** The folder that holds what the command wrote. */
  readonly upper: string
  readonly changes: readonly Change[]
}

/** Whether nothing changed that was looked at. Takes some microseconds a folder. */
export function isAsSeen(readSet: ReadSet, workspace: string): boolean {
  for (const [path, stamp] of readSet) if (stampOf(`${workspace}/${path}`) !== stamp) return false
  return true
}

/** The clock of a file system may stand still for so long: a change right after the look leaves no trace. */
const COARSE_NS = 20_000_000n

/** A new or deleted name changes the time of its folder. What changed just now is never as seen. */
function stampOf(path: string): string {
  try {
    const stat = lstatSync(path, { bigint: true, throwIfNoEntry: false })
    if (stat === undefined) return '-'
    const isFresh = BigInt(Date.now()) * 1_000_000n - stat.ctimeNs < COARSE_NS
    return isFresh ? crypto.randomUUID() : `${stat.dev}:${stat.ino}:${stat.ctimeNs}`
  } catch {
    return '-'
  }
}

/** @throws the system's error when one of the two folders is gone */
export function createLook({ workspace, upper, changes }: Looking): RecordingLook {
  const seen = new Map<string, string>()
  const note = (path: string) => {
    if (!seen.has(path)) seen.set(path, stampOf(`${workspace}/${path}`))
    return path
  }
  const trees = { before: openTree({ root: workspace, asItIs: true }), after: openTree({ root: upper, asItIs: true }) }
  const byPath = new Map(changes.map((change) => [change.path, change]))
  const below = Map.groupBy(changes, ({ path }) => folderOf(path))

  /** Everything that exists after the changes and belongs to them lies in the upper layer; everything else is as it was. */
  function at<T>(path: string, side: Side, use: (tree: Tree, raw: RawName) => T): T | undefined {
    const change = byPath.get(path)
    if (change !== undefined && change[side] === undefined) return undefined
    const isWorkspace = change === undefined || side === 'before'
    const tree = trees[isWorkspace ? 'before' : 'after']
    if (isWorkspace) note(folderOf(path))
    try {
      tree.betweenSteps()
      return use(tree, rawName(change ?? { path }))
    } catch {
      return undefined
    }
  }

  return {
    read: (path, side, maxBytes) =>
      at(note(path), side, (tree, raw) => {
        if (tree.look(raw)?.kind !== 'file') return undefined
        return startAt({ folder: tree.folder(folderOf(raw)), name: lastOf(raw) }, maxBytes)
      }),
    kind: (path, side) => (path === '' ? 'folder' : at(path, side, (tree, raw) => tree.look(raw)?.kind)),
    mode: (path, side) => at(note(path), side, (tree, raw) => tree.look(raw)?.mode),
    link: (path, side) => at(note(path), side, (tree, raw) => linkTextAt({ folder: tree.folder(folderOf(raw)), name: lastOf(raw) })),
    list(path, side) {
      const before = at(note(path), 'before', (tree, raw) => namesIn(tree, raw))
      if (side === 'before') return before
      const change = byPath.get(path)
      if (change === undefined ? before === undefined : change.after?.kind !== 'folder') return undefined
      const own = below.get(path) ?? []
      const gone = new Set(own.filter(({ after }) => after === undefined).map(({ path }) => lastOf(path)))
      const made = own.filter(({ after }) => after !== undefined).map(({ path }) => lastOf(path))
      const kept = before?.filter((name) => !gone.has(name)) ?? []
      return [...new Set([...kept, ...made])]
    },
    readSet: () => seen,
    [Symbol.dispose]() {
      for (const tree of Object.values(trees)) tree[Symbol.dispose]()
    },
  }
}

function namesIn(tree: Tree, raw: RawName): readonly string[] {
  using folder = hold(slot(tree.folder(raw), '.'), flags.syncFolder)
  return readdirSync(slot(folder), { encoding: 'buffer' }).map((name) => namesOf(name.toString('latin1')).path)
}
