/** Chooses the paths of a change set that go back together: a file needs its folder, and a folder goes with what is in it. */

import type { Side } from '../contract.ts'
import { folderOf, type RawName, rawName } from '../tree/names.ts'
import type { PathState } from './set-folder.ts'

/** @param wanted paths, each with everything below it; absent: all. @returns what is not on that side yet, parents first */
export function chosen(all: readonly PathState[], side: Side, wanted?: readonly string[]): readonly PathState[] {
  const open = all.filter(({ isChanged }) => isChanged === (side === 'before'))
  if (wanted === undefined) return open
  const byName = new Map(open.map((path) => [path.raw, path]))
  const names = wanted.map((path) => rawName({ path: path.replace(/\/+$/, '') }))
  const isWanted = (raw: RawName) => names.some((name) => raw === name || raw.startsWith(`${name}/`))
  const taken = new Set<RawName>()
  for (const { raw } of open.filter((path) => isWanted(path.raw)))
    for (let at = raw; at !== '' && (at === raw || isMissingFolder(byName.get(at))); at = folderOf(at)) taken.add(at)
  return open.filter(({ raw }) => taken.has(raw))
}

/** A deleted folder has to be there again before what was in it. */
function isMissingFolder(path: PathState | undefined): boolean {
  return path?.first.before?.kind === 'folder' && path.first.after?.kind !== 'folder'
}
