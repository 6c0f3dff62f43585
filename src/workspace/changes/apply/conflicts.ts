/** Compares a change set with the workspace as it is now: what somebody else changed since the command began is a conflict. */

import { readdirSync, readFileSync } from 'node:fs'
import type { Change } from '../../../runtime/changes.ts'
import { slot } from '../../descriptor.ts'
import type { Conflict } from '../contract.ts'
import type { Item } from '../set/plan.ts'
import { type EntryStat, folderOf, type Identity, identityOf, isInside, namesOf, type RawName, rawName } from '../tree/entry.ts'
import type { Pace, Tree } from '../tree/tree.ts'
import { indexDigest } from './git-index.ts'

type Comparing = {
  readonly changes: readonly Change[]
  readonly workspace: Tree
  readonly view: Tree
  /** The mark of the moment when the command began; files that changed before it are not compared. */
  readonly start: Identity
  readonly locks: HeldLocks
  /** Whether a file is the same although its times say that it changed since. */
  readonly isSameAnyway: (raw: RawName, now: EntryStat) => boolean
  readonly pace: Pace
}

type Compared = { readonly items: readonly Item[]; readonly conflicts: readonly Conflict[]; readonly bytes: number }

/** @throws when the private view is not the one that was judged, or with the system's error */
export async function compare(comparing: Comparing): Promise<Compared> {
  const { changes, workspace, view, pace } = comparing
  const all = new Map(changes.map((change) => [rawName(change), change]))
  const items: Item[] = []
  const conflicts: Conflict[] = []
  let bytes = 0
  for (const [raw, change] of all) {
    const base = !isInside(raw) || hasNewFolder(all, raw) ? undefined : workspace.lstat(raw)
    const reason = problem(comparing, { raw, change, now: base }) ?? newInside(comparing, all, raw, base)
    if (reason !== undefined) conflicts.push({ path: change.path, reason })
    const source = sourceOf(view, raw, change)
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

/** Whether the folder is created by the change set itself, so that nothing can be in it. */
function hasNewFolder(all: ReadonlyMap<RawName, Change>, raw: RawName): boolean {
  const above = all.get(folderOf(raw))
  return above?.after?.kind === 'folder' && above.before?.kind !== 'folder'
}

type ChangedEntry = { readonly raw: RawName; readonly change: Change; readonly now: EntryStat | undefined }

function problem({ start, locks, isSameAnyway, workspace }: Comparing, { raw, change, now }: ChangedEntry): string | undefined {
  const { before } = change
  if (!isInside(raw)) return 'is no path in the workspace'
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

/** A folder that goes must not have anything in it that the change set does not know. */
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
  if (after === undefined || !isInside(raw)) return undefined
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
  try {
    return readFileSync('/proc/locks', 'latin1').split('\n')
  } catch {
    return []
  }
}
