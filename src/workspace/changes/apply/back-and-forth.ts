/** Compares the paths of an applied or undone change set with the workspace, before they go back or forth once more. */

import { readdirSync } from 'node:fs'
import type { EntryState } from '../../../runtime/changes.ts'
import { slot } from '../../descriptor.ts'
import type { Conflict, Side } from '../contract.ts'
import { type Item, original } from '../set/plan.ts'
import type { PathState } from '../set/set-folder.ts'
import { type EntryStat, folderOf, identityOf, isSame, lastOf, linkBytes, namesOf, type RawName } from '../tree/entry.ts'
import { digestAt, type Pace, type Tree } from '../tree/tree.ts'
import { indexDigest } from './git-index.ts'

export type Returning = {
  readonly paths: readonly PathState[]
  readonly side: Side
  readonly workspace: Tree
  /** Holds the entries that will be moved into the workspace. */
  readonly from: Tree
  /** When the last move of the set was finished, in nanoseconds as text. */
  readonly since: string
  /** Replaces files that somebody changed since; their content is kept with the change set. */
  readonly force: boolean
  readonly pace: Pace
}

/** @throws the system's error */
export async function compareAgain(returning: Returning): Promise<{ items: readonly Item[]; conflicts: readonly Conflict[] }> {
  const { paths, side, workspace, from, force, pace } = returning
  const known = new Set(paths.map(({ raw }) => raw))
  const items: Item[] = []
  const conflicts: Conflict[] = []
  for (const path of paths) {
    const { raw, first } = path
    const [here, next] = side === 'before' ? [first.after, original(first)] : [original(first), first.after]
    const now = workspace.lstat(raw)
    const source = next === undefined || next.kind === 'folder' ? undefined : from.lstat(raw)
    const reason = missing(next, source) ?? (await difference(returning, known, { path, here, next, now }))
    const isForced = reason !== undefined && force && canForce(here, next, now, source)
    if (reason !== undefined && !isForced) conflicts.push({ path: first.path, reason })
    const entries = source && indexDigest(from, raw)
    items.push({
      ...namesOf(raw),
      before: isForced ? now && { kind: now.kind, mode: now.mode, size: now.size } : here,
      after: next,
      base: now && identityOf(now),
      source: source && identityOf(source),
      entries,
    })
    for (const tree of [workspace, from]) tree.betweenSteps()
    await pace()
  }
  return { items, conflicts }
}

function missing(next: EntryState | undefined, source: EntryStat | undefined): string | undefined {
  if (next === undefined || next.kind === 'folder') return undefined
  return source === undefined ? 'cannot be put back: what it was is no longer kept' : undefined
}

/** Only an entry that is not a folder before and after can be replaced as it is now. */
function canForce(
  here: EntryState | undefined,
  next: EntryState | undefined,
  now: EntryStat | undefined,
  source: EntryStat | undefined,
): boolean {
  const isPlain = (kind: EntryState['kind'] | undefined) => kind !== 'folder'
  return isPlain(here?.kind) && isPlain(next?.kind) && isPlain(now?.kind) && (next === undefined || source !== undefined)
}

type PathComparison = {
  readonly path: PathState
  readonly here: EntryState | undefined
  readonly next: EntryState | undefined
  readonly now: EntryStat | undefined
}

async function difference(returning: Returning, known: ReadonlySet<RawName>, step: PathComparison): Promise<string | undefined> {
  const { here, next, now, path } = step
  if (here === undefined) return now === undefined ? undefined : 'was created since'
  if (now === undefined) return 'was deleted since'
  if (now.kind !== here.kind) return `is a ${now.kind} now`
  if (here.kind === 'folder') return next?.kind === 'folder' ? modeDifference(here, now) : added(returning, known, path.raw)
  return (await isUnchanged(returning, step, now)) ? undefined : 'was changed since'
}

function modeDifference(here: EntryState, now: EntryStat): string | undefined {
  return (now.mode & 0o777) === (here.mode & 0o777) ? undefined : 'has another mode now'
}

function added({ workspace }: Returning, known: ReadonlySet<RawName>, raw: RawName): string | undefined {
  const names = readdirSync(slot(workspace.folder(raw)), { encoding: 'buffer' }).map((name) => name.toString('latin1'))
  const other = names.find((name) => !known.has(`${raw}/${name}`))
  return other === undefined ? undefined : `has ${JSON.stringify(namesOf(other).path)} in it, which was created since`
}

/** A file that last changed before the move ended is as the move left it; for other files the content decides. */
async function isUnchanged({ workspace, since, pace }: Returning, { path, here }: PathComparison, now: EntryStat): Promise<boolean> {
  const folder = workspace.folder(folderOf(path.raw))
  if (here?.kind === 'link') return here.target === undefined || linkBytes(folder, lastOf(path.raw)).toString() === here.target
  if (here?.kind === 'file' && (here.mode & 0o777) !== (now.mode & 0o777)) return false
  const left = path.last.source
  if (path.last.entries !== undefined && indexDigest(workspace, path.raw) === path.last.entries) return true
  if (left !== undefined && isSame(left, now) && (BigInt(now.changed) < BigInt(since) || here?.sha256 === undefined)) return true
  return here?.sha256 !== undefined && here.size === now.size && (await digestAt({ folder, name: lastOf(path.raw) }, pace)) === here.sha256
}
