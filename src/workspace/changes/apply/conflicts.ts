/**
 * Compares a change set with the workspace as it is now, before the set is applied, undone or redone: what somebody else changed is a
 * conflict.
 */

import { readdirSync, readFileSync } from 'node:fs'
import { attempt } from '../../../kit/errors.ts'
import type { Change, EntryState, OutsideGit } from '../../../runtime/changes.ts'
import { slot } from '../../descriptor.ts'
import type { Conflict, Side } from '../contract.ts'
import { type Item, original } from '../set/plan.ts'
import type { PathState } from '../set/set-folder.ts'
import {
  type EntryStat,
  folderOf,
  type Identity,
  identityOf,
  isInside,
  isSame,
  lastOf,
  linkBytes,
  namesOf,
  type RawName,
  rawName,
} from '../tree/entry.ts'
import { digestAt, type Pace, type Tree } from '../tree/tree.ts'
import { indexDigest } from './git-index.ts'

type Comparing = {
  readonly changes: readonly Change[]
  readonly workspace: Tree
  readonly view: Tree
  readonly outside: OutsideGit | undefined
  /** The mark of the moment when the command began; files that changed before it are not compared. */
  readonly start: Identity
  readonly locks: HeldLocks
  /** Tells whether a file is the same although its times say that it changed since. */
  readonly isSameAnyway: (raw: RawName, now: EntryStat) => boolean
  readonly pace: Pace
}

/** @throws when the private view is not the one that was judged, or with the system's error */
export async function compare(comparing: Comparing): Promise<{ items: readonly Item[]; conflicts: readonly Conflict[]; bytes: number }> {
  const { changes, workspace, view, outside, pace } = comparing
  const all = new Map(changes.map((change) => [rawName(change), change]))
  const items: Item[] = []
  const conflicts: Conflict[] = []
  let bytes = 0
  for (const [raw, change] of all) {
    const base = !isInside(raw, outside) || hasNewFolder(all, raw) ? undefined : workspace.lstat(raw)
    if (base !== undefined && (await isObjectThere(comparing, { raw, change, now: base }))) {
      all.delete(raw)
      continue
    }
    const reason = problem(comparing, { raw, change, now: base }) ?? newInside(comparing, all, raw, base)
    if (reason !== undefined) conflicts.push({ path: change.path, reason })
    const source = isInside(raw, outside) ? sourceOf(view, raw, change) : undefined
    if (change.before?.kind === 'file') bytes += base?.size ?? 0
    const entries = source && indexDigest(view, raw)
    items.push({
      ...change,
      ...(base && { base: identityOf(base) }),
      ...(source && { source: identityOf(source) }),
      ...(entries && { entries }),
    })
    for (const tree of [workspace, view]) tree.betweenSteps()
    await pace()
  }
  return { items, conflicts, bytes }
}

/** Tells whether the folder is created by the change set itself, so that nothing can be in it. */
function hasNewFolder(all: ReadonlyMap<RawName, Change>, raw: RawName): boolean {
  const above = all.get(folderOf(raw))
  return above?.after?.kind === 'folder' && above.before?.kind !== 'folder'
}

const OBJECT = /(?:^|\/)objects\/[\da-f]{2}(?:\/[\da-f]{38,62})?$/

/** Commits that are made side by side in several worktrees bring the same objects of git, and folders for them. */
async function isObjectThere({ workspace, pace }: Comparing, { raw, change: { before, after }, now }: ChangedEntry): Promise<boolean> {
  if (before !== undefined || now === undefined || now.kind !== after?.kind || !OBJECT.test(raw)) return false
  const isSameFile = async () => (await digestAt({ folder: workspace.folder(folderOf(raw)), name: lastOf(raw) }, pace)) === after.sha256
  return now.kind === 'folder' || (now.kind === 'file' && now.size === after.size && (await isSameFile()))
}

type ChangedEntry = { readonly raw: RawName; readonly change: Change; readonly now: EntryStat | undefined }

function problem({ start, locks, isSameAnyway, workspace, outside }: Comparing, { raw, change, now }: ChangedEntry): string | undefined {
  const { before } = change
  if (!isInside(raw, outside)) return 'is not a path in the workspace'
  if (before === undefined) return now === undefined ? undefined : 'was created meanwhile'
  if (now === undefined) return 'was deleted meanwhile'
  if (now.kind !== before.kind) return `is a ${now.kind} now`
  if (now.kind === 'folder') return now.mode === before.mode || change.after === undefined ? undefined : 'has another mode now'
  if (isNewer(now, start) && !isSameAnyway(raw, now)) return 'was changed meanwhile'
  return locks.isHeld(raw, now, (other) => workspace.lstat(other)) ? 'is in use: another program holds a lock on it' : undefined
}

/**
 * A file system with coarse times gives a change right before the beginning the same time as the beginning. A change right after it has
 * that time too, but the command needs longer than one tick of that clock until it sees a file.
 */
function isNewer({ changed }: EntryStat, start: Identity): boolean {
  return BigInt(changed) > BigInt(start.changed)
}

/** Returns the conflict when a folder to be removed contains an entry that the change set does not know. */
function newInside(
  { workspace }: Comparing,
  all: ReadonlyMap<RawName, Change>,
  raw: RawName,
  now: EntryStat | undefined,
): string | undefined {
  const change = all.get(raw)
  if (now?.kind !== 'folder' || change?.before?.kind !== 'folder' || change.after?.kind === 'folder') return undefined
  const names = readdirSync(slot(workspace.folder(raw)), { encoding: 'buffer' }).map((name) => name.toString('latin1'))
  const other = names.find((name) => all.get(`${raw}/${name}`)?.before === undefined)
  return other === undefined ? undefined : `is to be deleted, but ${JSON.stringify(namesOf(other).path)} was created in it meanwhile`
}

function sourceOf(view: Tree, raw: RawName, { path, after }: Change): EntryStat | undefined {
  if (after === undefined) return undefined
  const found = view.lstat(raw)
  const isRight = found?.kind === after.kind && (after.kind !== 'file' || after.size === undefined || found.size === after.size)
  if (!isRight || found === undefined) throw new Error(`${JSON.stringify(path)} is not in the private view as it was judged`)
  if (after.kind === 'other') throw new Error(`${JSON.stringify(path)} is a pipe, socket or device; these are never applied`)
  return found
}

/** SQLite locks one file of a database for all of them. */
const COMPANION = /-(wal|shm|journal)$/

type HeldLocks = {
  /** @param find looks at another path of the workspace */
  isHeld(raw: RawName, found: EntryStat, find: (raw: RawName) => EntryStat | undefined): boolean
}

/**
 * Reads which files some process holds locked: a database that is open elsewhere must not be replaced or removed. A system that does not
 * show its locks has none.
 */
export function readHeldLocks(): HeldLocks {
  const held = new Set(lines().flatMap((line) => / ([\da-f]+:[\da-f]+:\d+) /.exec(line)?.[1] ?? []))
  const holds = (found: EntryStat | undefined) => found !== undefined && held.has(`${found.device}:${found.inode}`)
  return {
    isHeld(raw, found, find) {
      if (held.size === 0) return false
      return holds(found) || (COMPANION.test(raw) && holds(find(raw.replace(COMPANION, ''))))
    },
  }
}

function lines(): string[] {
  return attempt(() => readFileSync('/proc/locks', 'latin1').split('\n')) ?? []
}

type Returning = {
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

/**
 * Compares the paths of an applied or undone change set with the workspace, before they are undone or redone. @throws the system's error
 */
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
  return source === undefined ? 'cannot be put back: its earlier state is not kept any more' : undefined
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
