/** Applies, undoes and redoes change sets, one at a time: the caller holds the turn. */

import { lstatSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { atEnd } from '../../../kit/errors.ts'
import type { Change } from '../../../runtime/changes.ts'
import type { Log } from '../../../runtime/port.ts'
import { flags, hold } from '../../descriptor.ts'
import type { Admit, Applied, Conflict, Side, ToApply } from '../contract.ts'
import { createLook } from '../look.ts'
import { discard, flushFile, headerOf, loadPlan, type MovePlan, original, renamePlan, writePlan } from '../set/plan.ts'
import {
  adopt,
  finishedIn,
  loadPaths,
  markBusy,
  markOf,
  outsideOf,
  type PathState,
  restoreModes,
  setFolder,
  stageOf,
  tidy,
  triedIn,
} from '../set/set-folder.ts'
import { type EntryStat, folderOf, lstat, namesOf, type RawName, rawName } from '../tree/entry.ts'
import type { Libc } from '../tree/libc.ts'
import { createPace, type Pace } from '../tree/tree.ts'
import { lockWorkspace } from '../turns.ts'
import { compare, compareAgain, readHeldLocks } from './conflicts.ts'
import { isSameIndex } from './git-index.ts'
import { flush, openKeptTree, openWorkspaceTree, perform } from './perform.ts'

export type TransferOptions = {
  /** Folder of the store. */
  readonly store: string
  readonly workspace: string
  readonly log: Log
  readonly libc: () => Libc
  readonly onStep?: () => void
  readonly admit?: Admit
}

export type Moving = { readonly id: string; readonly side: Side; readonly paths?: readonly string[]; readonly force?: boolean }

/** Both reject with the system's error when nothing was changed yet. */
export type Transfer = { apply(set: ToApply): Promise<Applied>; moveTo(moving: Moving): Promise<Applied> }

export function createTransfer({ store, workspace: given, log, libc, onStep, admit }: TransferOptions): Transfer {
  const write = async (folder: string, plan: MovePlan, pace: Pace, bytes: number) => {
    const path = await writePlan(folder, plan, pace)
    await flush(libc(), folder, bytes)
    return path
  }

  async function start(folder: string, plan: MovePlan, pace: Pace, signal?: AbortSignal): Promise<Applied> {
    const path = await write(
      folder,
      plan,
      pace,
      plan.items.reduce((sum, { after }) => sum + (after?.size ?? 0), plan.items.length * 512),
    )
    if (signal?.aborted) {
      discard(path)
      return cancelled
    }
    onStep?.()
    renamePlan(folder, 'plan.tmp', 'plan')
    const done = await perform({ folder, plan, again: false, libc: libc(), log, pace, onStep })
    if (done.ok && plan.header.to === 'after') tidy(folder)
    return done
  }

  async function apply({ id, folder: elsewhere, signal, ...set }: ToApply): Promise<Applied> {
    const folder = adopt(store, id, elsewhere ?? join(store, id))
    const stage = stageOf(folder)
    if (stage !== undefined && stage.state !== 'pending') return refused(`the change set ${id} is ${stage.state} already`)
    const pace = createPace()
    const held = stage === undefined ? undefined : await loadPlan(join(folder, 'pending'), pace)
    const changes = set.changes ?? held?.items
    const about = set.about ?? held?.header.about
    const review = set.review ?? held?.header.review
    if (changes === undefined || about === undefined) return refused(`the change set ${id} does not exist`)
    const root = held?.header.workspace ?? realpathSync(given)
    using _ = markBusy(store, id, root)
    using locked = await lockWorkspace(libc(), root)
    if ((held?.header.place ?? markOf(folder) ?? locked.place) !== locked.place) return elsewhereNow(root)
    const outside = outsideOf(folder)
    using git = outside && (await lockWorkspace(libc(), outside.common))
    if (outside && outside.place !== git?.place) return elsewhereNow(outside.common)
    const upper = join(folder, 'up')
    openKeptTree(libc(), folder, 'up')[Symbol.dispose]()
    using look = createLook({ workspace: root, upper, changes, outside })
    const admission = await (set.admit ?? admit)?.({ about, review, workspace: root, changes, to: 'after', look, upper })
    if (admission?.ok === false) {
      if (held && admission.review) await keepReview(folder, { ...held, header: { ...held.header, review: admission.review } }, pace)
      return { ...refused(admission.message), denied: true }
    }
    const compared = await compareWith(folder, { root, changes, pace })
    if (compared.conflicts.length > 0) return conflicting(compared.conflicts)
    if (signal?.aborted) return cancelled
    const { items, bytes } = compared
    const counts = { items: items.length, count: items.length, changed: items.length, bytes }
    const header = headerOf({ workspace: root, about, review, ...counts, place: locked.place, undoable: admission?.undoable })
    return await start(folder, { header, items }, pace, signal)
  }

  /** The question about the set shows the judgement of now from then on. */
  async function keepReview(folder: string, plan: MovePlan, pace: Pace): Promise<void> {
    flushFile(await writePlan(folder, plan, pace))
    renamePlan(folder, 'plan.tmp', 'pending')
  }

  async function compareWith(folder: string, { root, changes, pace }: { root: string; changes: readonly Change[]; pace: Pace }) {
    using workspace = openWorkspaceTree(libc(), folder, root)
    using view = openKeptTree(libc(), folder, 'up')
    using _end = atEnd(() => restoreModes(folder, workspace))
    using top = hold(folder, flags.folder)
    const start = lstat(top, 'start')
    if (start === undefined) throw new Error(`${folder} has no mark of when it began`)
    const tried = triedIn(folder)
    const isSameAnyway = (raw: RawName, now: EntryStat) => tried(raw, now) || isSameIndex(workspace, folder, raw)
    return await compare({ changes, workspace, view, outside: outsideOf(folder), start, locks: readHeldLocks(), isSameAnyway, pace })
  }

  async function moveTo({ id, side, paths: only, force = false }: Moving): Promise<Applied> {
    const folder = setFolder(store, id)
    const stage = stageOf(folder)
    if (stage === undefined) return refused(`the change set ${id} does not exist`)
    if (!['applied', 'partly undone', 'undone'].includes(stage.state))
      return refused(`the change set ${id} is ${stage.state}${stage.state === 'pending' ? ': nothing of it is in the workspace' : ''}`)
    const pace = createPace()
    const all = await loadPaths(folder, pace)
    const paths = chosen(all, side, only)
    if (paths.length === 0) return refused(`there is nothing to ${side === 'before' ? 'undo' : 'redo'} in the change set ${id}`)
    const { workspace: root, about, review, count, bytes, undoable, place } = stage.header
    using _ = markBusy(store, id, root)
    using locked = await lockWorkspace(libc(), root)
    if (!force && (place ?? locked.place) !== locked.place) return elsewhereNow(root)
    const outside = outsideOf(folder)
    using git = outside && (await lockWorkspace(libc(), outside.common))
    if (outside && outside.place !== git?.place) return elsewhereNow(outside.common)
    const kept = side === 'before' ? 'undo' : 'up'
    const from = join(folder, kept)
    using waiting = openKeptTree(libc(), folder, kept)
    const changes = changesTo(side, paths)
    using look = createLook({ workspace: root, upper: from, changes, outside })
    // A person asks for it, so that it is compared with no earlier judgement.
    const admission = await admit?.({ about, workspace: root, changes, to: side, undoable, look, upper: from })
    if (admission?.ok === false) return { ...refused(admission.message), denied: true }
    const since = String(lstatSync(join(folder, finishedIn(folder).at(-1) ?? ''), { bigint: true }).ctimeNs)
    using workspace = openWorkspaceTree(libc(), folder, root)
    const { items, conflicts } = await compareAgain({ paths, side, workspace, from: waiting, since, force, pace })
    restoreModes(folder, workspace)
    if (conflicts.length > 0) return conflicting(conflicts)
    const left = all.filter(({ isChanged }) => isChanged).length + (side === 'before' ? -paths.length : paths.length)
    const header = headerOf({
      workspace: root,
      about,
      review,
      to: side,
      items: items.length,
      count,
      changed: left,
      bytes,
      place: locked.place,
      undoable: admission?.undoable ?? undoable,
    })
    return await start(folder, { header, items }, pace)
  }

  return { apply, moveTo }
}

/** Returns what an undo or redo of these paths would change. */
function changesTo(side: Side, paths: readonly PathState[]): readonly Change[] {
  return paths.map(({ raw, first }) => {
    const [before, after] = side === 'after' ? [original(first), first.after] : [first.after, original(first)]
    return { ...namesOf(raw), before, after }
  })
}

const cancelled: Applied = { ok: false, conflicts: [], message: 'cancelled before anything was changed' }

function refused(message: string): Extract<Applied, { ok: false }> {
  return { ok: false, conflicts: [], message }
}

function elsewhereNow(root: string): Applied {
  const what = `the folder ${JSON.stringify(root)} is another one now than when the command ran`
  return { ...refused(`${what}; nothing was changed: move the right one back, or run the command again`), denied: true }
}

function conflicting(conflicts: readonly Conflict[]): Applied {
  const named = conflicts.slice(0, 5).map(({ path, reason }) => `${JSON.stringify(path)} ${reason}`)
  const more = conflicts.length > named.length ? `, and ${conflicts.length - named.length} more` : ''
  return { ok: false, conflicts, message: `nothing was changed: ${named.join('; ')}${more}` }
}

/**
 * Chooses the paths of a change set that go back together: a file needs its folder, and a folder goes with what is in it.
 * @param wanted paths, each with everything below it; absent: all. @returns what is not on that side yet, parents first
 */
function chosen(all: readonly PathState[], side: Side, only?: readonly string[]): readonly PathState[] {
  const open = all.filter(({ isChanged }) => isChanged === (side === 'before'))
  if (only === undefined) return open
  const byName = new Map(open.map((path) => [path.raw, path]))
  const names = only.map((path) => rawName({ path: path.replace(/\/+$/, '') }))
  const isWanted = (raw: RawName) => names.some((name) => raw === name || raw.startsWith(`${name}/`))
  const included = new Set<RawName>()
  for (const { raw } of open.filter((path) => isWanted(path.raw)))
    for (let at = raw; at !== '' && (at === raw || isMissingFolder(byName.get(at))); at = folderOf(at)) included.add(at)
  return open.filter(({ raw }) => included.has(raw))
}

/** Tells whether a deleted folder must be restored before its content. */
function isMissingFolder(path: PathState | undefined): boolean {
  return path?.first.before?.kind === 'folder' && path.first.after?.kind !== 'folder'
}
