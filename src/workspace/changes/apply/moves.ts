/**
 * Moves the entries of a change set between three trees: each path of the workspace gets what waits for it in `from`, and what was there
 * goes to `to`. Every step can be repeated: after a crash the same moves are asked for again, and what is done is left alone.
 */

import { chmodSync, lchownSync, mkdirSync, promises, rmdirSync, symlinkSync, unlinkSync } from 'node:fs'
import { hasCode, unlessCode, unlessMissing } from '../../../kit/errors.ts'
import { type Handle, slot } from '../../descriptor.ts'
import type { Item } from '../set/plan.ts'
import {
  type EntryStat,
  folderOf,
  isSame,
  isUntouched,
  lastOf,
  linkBytes,
  lstat,
  namesOf,
  type RawName,
  rawName,
  rawSlot,
} from '../tree/entry.ts'
import type { EntryPlace, Libc } from '../tree/libc.ts'
import type { Pace, Tree } from '../tree/tree.ts'

export type Moves = {
  readonly items: readonly Item[]
  readonly trees: { readonly workspace: Tree; readonly from: Tree; readonly to: Tree }
  /** The plan was begun before: steps that are already done are not conflicts. */
  readonly again: boolean
  /** The new entries were made by a command: attributes of the overlay and special bits are removed. */
  readonly foreign: boolean
  /** Owner of new files; absent when the process cannot choose. */
  readonly owner?: { readonly uid: number; readonly gid: number }
  readonly temporary: RawName
  readonly libc: Libc
  readonly pace: Pace
  /** Called before each change on disk, for tests that stop there. */
  readonly onStep?: () => void
  /** Called for a path that cannot be moved; the others are moved still. Without it the first one ends the moves. */
  readonly onProblem?: (item: Item, error: unknown) => void
}

/** The workspace was changed while the change set was applied. */
export class Conflicting extends Error {
  constructor(
    readonly raw: RawName,
    readonly reason: string,
  ) {
    super(`${JSON.stringify(namesOf(raw).path)} ${reason}`)
  }
}

const isFolder = (state: Item['before']) => state?.kind === 'folder'

/** @throws Conflicting, or the system's error; the moves before it are done then */
export async function move(moves: Moves): Promise<void> {
  const { items } = moves
  const goes = ({ before, after }: Item) => before !== undefined && (after === undefined || isFolder(before) !== isFolder(after))
  const appears = ({ before, after }: Item) => isFolder(after) && !isFolder(before)
  const backwards = items.toReversed()
  await each(moves, backwards.filter(goes), remove)
  await each(moves, items.filter(appears), makeFolder)
  await each(
    moves,
    items.filter(({ after }) => after !== undefined && !isFolder(after)),
    put,
  )
  await each(
    moves,
    backwards.filter(({ after }) => isFolder(after)),
    setMode,
  )
}

type MoveStep = (moves: Moves, item: Item, raw: RawName) => Promise<void> | void

async function each(moves: Moves, items: readonly Item[], step: MoveStep): Promise<void> {
  const { workspace, from, to } = moves.trees
  for (const item of items) {
    try {
      if (moves.again && !isDirect(moves)) discardHalfCopy(moves, rawName(item))
      const stepping = step(moves, item, rawName(item))
      if (stepping !== undefined) await stepping
    } catch (error) {
      if (moves.onProblem === undefined) throw error
      moves.onProblem(item, error)
    }
    workspace.betweenSteps()
    from.betweenSteps()
    to.betweenSteps()
    const pause = moves.pace()
    if (pause !== undefined) await pause
  }
}

/** A copy that was interrupted has a name that only these moves use. */
function discardHalfCopy({ trees: { workspace }, temporary }: Moves, raw: RawName): void {
  if (workspace.lstat(folderOf(raw) === '' ? temporary : `${folderOf(raw)}/${temporary}`) === undefined) return
  deleteEntry({ folder: workspace.folder(folderOf(raw)), name: temporary })
}

/** Entries move only within one file system; between two they are copied, and a copy has another inode. */
function isDirect({ trees: { workspace, from, to } }: Moves): boolean {
  return workspace.device === from.device && workspace.device === to.device
}

/** When it was begun before, an earlier step may have changed the time of the entry's last change. */
function isBase(moves: Moves, { base }: Item, now: EntryStat): boolean {
  if (base === undefined) return false
  return moves.again ? isSame(base, now, { copied: !isDirect(moves) }) : isUntouched(base, now)
}

function isSource(moves: Moves, { source }: Item, found: EntryStat | undefined): boolean {
  return source !== undefined && found !== undefined && isSame(source, found, { copied: !isDirect(moves) })
}

function placeIn(folder: Handle, raw: RawName): EntryPlace {
  return { folder, name: lastOf(raw) }
}

async function remove(moves: Moves, item: Item, raw: RawName): Promise<void> {
  const now = moves.trees.workspace.lstat(raw)
  if (now === undefined) return
  if (isFolder(item.before)) return now.kind === 'folder' ? removeFolder(moves, raw) : undefined
  if (now.kind === 'folder' && moves.again) return
  if (!isBase(moves, item, now)) throw new Conflicting(raw, 'was changed meanwhile')
  await takeOut(moves, item, raw)
}

function removeFolder({ trees: { workspace }, onStep }: Moves, raw: RawName): void {
  onStep?.()
  workspace.forget(raw)
  try {
    rmdirSync(rawSlot(workspace.folder(folderOf(raw)), lastOf(raw)))
  } catch (error) {
    if (hasCode(error, 'ENOTEMPTY')) throw new Conflicting(raw, 'has something new in it')
    throw error
  }
}

/** Moves what is at a path to the other tree, then looks at what was really moved. */
async function takeOut(moves: Moves, { base }: Item, raw: RawName): Promise<void> {
  const at = placeIn(moves.trees.workspace.folder(folderOf(raw)), raw)
  const backup = placeIn(moves.trees.to.madeFolder(folderOf(raw)), raw)
  moves.onStep?.()
  if (!isDirect(moves)) {
    await keepCopy(moves, at, backup)
    moves.onStep?.()
    return deleteEntry(at)
  }
  moves.libc.rename(at, backup, 'create')
  const moved = moves.libc.lstat(backup.folder, backup.name)
  if (base !== undefined && moved !== undefined && isSame(base, moved)) return
  moves.libc.rename(backup, at, 'create')
  throw new Conflicting(raw, 'was changed meanwhile')
}

/** Copies what goes, unless a copy of it is there from before: there may be no room for another one. */
async function keepCopy({ libc, temporary }: Moves, at: EntryPlace, backup: EntryPlace): Promise<void> {
  const [now, copy] = [libc.lstat(at.folder, at.name), libc.lstat(backup.folder, backup.name)]
  if (now !== undefined && copy !== undefined && isSame(now, copy, { copied: true })) return
  await copyEntry(libc, { from: at, to: backup, temporary })
}

function makeFolder({ trees: { workspace }, libc, again, owner, onStep }: Moves, _item: Item, raw: RawName): void {
  const at = placeIn(workspace.folder(folderOf(raw)), raw)
  onStep?.()
  try {
    mkdirSync(rawSlot(at.folder, at.name), 0o700)
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
    if (!again || libc.lstat(at.folder, at.name)?.kind !== 'folder') throw new Conflicting(raw, 'was created meanwhile')
  }
  if (owner !== undefined) setOwner(at, { uid: owner.uid, gid: workspace.groupOf(folderOf(raw)) ?? owner.gid })
}

function setOwner({ folder, name }: EntryPlace, { uid, gid }: { readonly uid: number; readonly gid: number }): void {
  lchownSync(rawSlot(folder, name), uid, gid)
}

async function put(moves: Moves, item: Item, raw: RawName): Promise<void> {
  const { workspace, from } = moves.trees
  const source = from.lstat(raw)
  const now = workspace.lstat(raw)
  if (source === undefined || !isSource(moves, item, source)) return settle(moves, item, source)
  // The copy of a file may get the inode number of the folder that stood there.
  const isOther = isFolder(item.base) || now?.inode !== item.base?.inode
  if (moves.again && !isDirect(moves) && isSource(moves, item, now) && isOther) return
  assertReplaceable(moves, item, now)
  const waiting = placeIn(from.folder(folderOf(raw)), raw)
  const at = placeIn(workspace.folder(folderOf(raw)), raw)
  prepare(moves, item, { source, waiting, now })
  if (!isDirect(moves)) return putCopy(moves, item, { waiting, at })
  moves.onStep?.()
  if (now === undefined) return moves.libc.rename(waiting, at, 'create')
  moves.libc.rename(waiting, at, 'exchange')
  keep(moves, item, { waiting, at })
}

/** @throws Conflicting */
function assertReplaceable(moves: Moves, item: Item, now: EntryStat | undefined): void {
  const replaces = item.before !== undefined && !isFolder(item.before)
  if (replaces && now === undefined) throw new Conflicting(rawName(item), 'was deleted meanwhile')
  if (!replaces && now !== undefined) throw new Conflicting(rawName(item), 'was created meanwhile')
  if (now !== undefined && !isBase(moves, item, now)) throw new Conflicting(rawName(item), 'was changed meanwhile')
}

type Exchange = { readonly waiting: EntryPlace; readonly at: EntryPlace }

/** The original has changed places with what came. If somebody replaced it at the last moment, both go back. */
function keep(moves: Moves, item: Item, { waiting, at }: Exchange): void {
  const raw = rawName(item)
  const original = moves.libc.lstat(waiting.folder, waiting.name)
  if (item.base === undefined || original === undefined || !isSame(item.base, original)) {
    moves.libc.rename(waiting, at, 'exchange')
    throw new Conflicting(raw, 'was changed meanwhile')
  }
  moves.onStep?.()
  moves.libc.rename(waiting, placeIn(moves.trees.to.madeFolder(folderOf(raw)), raw), 'create')
}

/** Completes what was interrupted between the exchange and the move of the original, in the direction of these moves. */
function settle(moves: Moves, item: Item, source: EntryStat | undefined): void {
  const raw = rawName(item)
  const { workspace, from, to } = moves.trees
  if (!moves.again) throw new Conflicting(raw, 'is not in the private view any more')
  if (!isDirect(moves) || item.base === undefined) return
  if (source !== undefined && isSame(item.base, source)) {
    moves.onStep?.()
    moves.libc.rename(placeIn(from.folder(folderOf(raw)), raw), placeIn(to.madeFolder(folderOf(raw)), raw), 'create')
    return
  }
  if (!isSource(moves, item, to.lstat(raw))) return
  moves.onStep?.()
  moves.libc.rename(placeIn(to.folder(folderOf(raw)), raw), placeIn(workspace.folder(folderOf(raw)), raw), 'exchange')
}

type Preparing = { readonly source: EntryStat; readonly waiting: EntryPlace; readonly now: EntryStat | undefined }

/** Gives what a command made the owner of what it replaces, and removes what only the overlay or an attack needs. */
function prepare(moves: Moves, item: Item, { source, waiting, now }: Preparing): void {
  const { foreign, owner, libc, onStep, trees } = moves
  if (!foreign) return
  onStep?.()
  const owned = now ?? (owner && { uid: owner.uid, gid: trees.workspace.groupOf(folderOf(rawName(item))) ?? owner.gid })
  if (owner && owned && (owned.uid !== source.uid || owned.gid !== source.gid)) setOwner(waiting, owned)
  if (source.kind !== 'file') return
  const path = rawSlot(waiting.folder, waiting.name)
  libc.removeAttributes(path, 'user.overlay.')
  const mode = (item.after?.mode ?? 0o600) & 0o777
  if (source.mode !== mode) chmodSync(path, mode)
}

/** On another file system: first the new content is there, then the original is kept, then the name changes. */
async function putCopy(moves: Moves, item: Item, { waiting, at }: Exchange): Promise<void> {
  const { trees, libc, temporary, onStep } = moves
  const raw = rawName(item)
  const staged = { folder: at.folder, name: temporary }
  onStep?.()
  await copyEntry(libc, { from: waiting, to: staged })
  onStep?.()
  const replaces = item.before !== undefined && !isFolder(item.before)
  if (replaces) await keepCopy(moves, at, placeIn(trees.to.madeFolder(folderOf(raw)), raw))
  const now = libc.lstat(at.folder, at.name)
  onStep?.()
  if (replaces && (now === undefined || item.base === undefined || !isSame(item.base, now, { copied: true })))
    throw new Conflicting(raw, 'was changed meanwhile')
  libc.rename(staged, at, replaces ? 'replace' : 'create')
}

function setMode({ trees: { workspace }, foreign, onStep }: Moves, item: Item, raw: RawName): void {
  const now = workspace.lstat(raw)
  if (now?.kind !== 'folder' || item.after === undefined) return
  const mode = foreign ? (item.after.mode & 0o777) | (now.mode & 0o7000) : item.after.mode
  if (now.mode === mode) return
  onStep?.()
  chmodSync(slot(workspace.folder(raw)), mode)
}

/**
 * Copies one file or link to another file system, with mode, owner and times; a reader never sees half of it. Replaces what is at the
 * new place. `temporary` is the name of the copy until it is complete; without it no process reads the copy before that.
 * @throws the system's error
 */
async function copyEntry(libc: Libc, { from, to, temporary }: { from: EntryPlace; to: EntryPlace; temporary?: RawName }): Promise<void> {
  const made = { folder: to.folder, name: temporary ?? to.name }
  const state = lstat(from.folder, from.name)
  if (state?.kind !== 'file' && state?.kind !== 'link') throw new Error('only files and links can be kept on another file system')
  deleteEntry(made)
  if (state.kind === 'link') symlinkSync(linkBytes(from.folder, from.name), rawSlot(made.folder, made.name))
  else await promises.copyFile(rawSlot(from.folder, from.name), rawSlot(made.folder, made.name))
  likeOriginal(libc, made, state)
  if (temporary !== undefined) libc.rename(made, to, 'replace')
}

function likeOriginal(libc: Libc, made: EntryPlace, { kind, uid, gid, mode, modified }: EntryStat): void {
  const path = rawSlot(made.folder, made.name)
  const now = lstat(made.folder, made.name)
  // Only root can set the owner of a file.
  if (now !== undefined && (now.uid !== uid || now.gid !== gid)) unlessCode(['EPERM'], () => lchownSync(path, uid, gid))
  if (kind === 'file') chmodSync(path, mode)
  const time = BigInt(modified)
  const seconds = time / 1_000_000_000n - (time % 1_000_000_000n < 0n ? 1n : 0n)
  libc.setModified(made, { seconds, nanoseconds: time - seconds * 1_000_000_000n })
}

/** Does nothing when nothing is there. @throws the system's error */
function deleteEntry({ folder, name }: EntryPlace): void {
  unlessMissing(() => unlinkSync(rawSlot(folder, name)))
}
