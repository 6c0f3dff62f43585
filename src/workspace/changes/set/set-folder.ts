/** Finds the folder of each change set, and tells from the files in it how far the set is. */

import {
  appendFileSync,
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { isAbsolute, join } from 'node:path'
import { attempt, unlessCode, unlessMissing } from '../../../kit/errors.ts'
import type { OutsideGit } from '../../../runtime/changes.ts'
import { slot } from '../../descriptor.ts'
import type { SetState, SetSummary } from '../contract.ts'
import { type EntryStat, isSame, type RawName, rawName } from '../tree/entry.ts'
import { type Pace, removeTree, type Tree } from '../tree/tree.ts'
import { discard, type Header, type Item, loadPlan, type MovePlan, readHeader, readPlan } from './plan.ts'

const ID = /^[A-Za-z\d][\w.-]{0,127}$/
const TRASH = '.gone-'
const BUSY = '.busy-'

/** @throws when it is not an id */
export function setFolder(store: string, id: string): string {
  if (!ID.test(id)) throw new Error(`${JSON.stringify(id)} is not the id of a change set`)
  return join(store, id)
}

/** A private view can be on another file system than the store; the store then has a link to it. @throws the system's error */
export function adopt(store: string, id: string, folder: string): string {
  const path = setFolder(store, id)
  if (folder === path || existsSync(path)) return path
  if (!isAbsolute(folder)) throw new Error(`${JSON.stringify(folder)} is not an absolute path`)
  mkdirSync(store, { recursive: true, mode: 0o700 })
  symlinkSync(folder, path)
  return path
}

export function idsIn(store: string): string[] {
  return namesIn(store).filter((name) => ID.test(name))
}

/** Names of change sets whose removal was interrupted. */
export function trashIn(store: string): string[] {
  return namesIn(store).filter((name) => name.startsWith(TRASH))
}

function namesIn(folder: string): string[] {
  return unlessMissing(() => readdirSync(folder)) ?? []
}

/** @throws the system's error */
export async function removeSet(store: string, id: string): Promise<void> {
  const path = setFolder(store, id)
  const elsewhere = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ? readlinkSync(path) : undefined
  if (elsewhere !== undefined) await removeTree(elsewhere)
  const trash = join(store, `${TRASH}${id}`)
  if (moveAway(path, trash)) await removeTree(trash)
}

/** Returns the device and inode of the workspace that a command began in; undefined for sets of earlier versions and of file tools. */
export function markOf(folder: string): string | undefined {
  const path = join(folder, 'start')
  return existsSync(path) ? readFileSync(path, 'utf8') || undefined : undefined
}

/** Returns the git directory outside the workspace that the set covers, too, with its device and inode when the command began. */
export function outsideOf(folder: string): (OutsideGit & { readonly place: string }) | undefined {
  const text = unlessMissing(() => readFileSync(join(folder, 'outside'), 'utf8'))
  return text === undefined ? undefined : JSON.parse(text)
}

/** Names of the finished moves of a set, oldest first. */
export function finishedIn(folder: string): string[] {
  return finished(namesIn(folder))
}

function finished(names: readonly string[]): string[] {
  return names.filter((name) => /^done-\d+$/.test(name)).sort((a, b) => Number(a.slice(5)) - Number(b.slice(5)))
}

type Stage = { readonly state: SetState; readonly header: Header }

/** @returns undefined for a folder that holds no change set yet @throws when a file in it is damaged */
export function stageOf(folder: string): Stage | undefined {
  const names = namesIn(folder)
  const header = (name: string) => (names.includes(name) ? readHeader(join(folder, name)) : undefined)
  const [unfinished, stuck] = [header('plan'), header('stuck')]
  if (unfinished !== undefined) return { state: 'unfinished', header: unfinished }
  if (stuck !== undefined) return { state: 'stuck', header: stuck }
  const done = header(finished(names).at(-1) ?? '')
  if (done !== undefined) return { state: stateOf(done), header: done }
  const pending = header('pending')
  return pending === undefined ? undefined : { state: 'pending', header: pending }
}

function stateOf({ changed, count }: Header): SetState {
  if (changed === count) return 'applied'
  return changed === 0 ? 'undone' : 'partly undone'
}

export function summaryOf(id: string, { state, header }: Stage): SetSummary {
  const { about, workspace, count, bytes, review } = header
  return { id, state, about, workspace, count, bytes, review }
}

/** A path of a set, how it was changed first, and the last move that changed it. */
export type PathState = { readonly raw: RawName; readonly first: Item; readonly last: Item; readonly isChanged: boolean }

/** @throws when a file in the folder is damaged */
export function pathsOf(folder: string): PathState[] {
  return statesAfter(finishedIn(folder).map((name) => readPlan(join(folder, name))))
}

/** Does the same as pathsOf without blocking the process. */
export async function loadPaths(folder: string, pace: Pace): Promise<PathState[]> {
  const plans: MovePlan[] = []
  for (const name of finishedIn(folder)) plans.push(await loadPlan(join(folder, name), pace))
  return statesAfter(plans)
}

function statesAfter(plans: readonly MovePlan[]): PathState[] {
  const paths = new Map<RawName, PathState>()
  for (const { header, items } of plans)
    for (const item of items) {
      const raw = rawName(item)
      paths.set(raw, { raw, first: paths.get(raw)?.first ?? item, last: item, isChanged: header.to === 'after' })
    }
  return [...paths.values()]
}

/** Tells other processes, and the next one after a crash, that this set is being worked on in this workspace. */
export function markBusy(store: string, id: string, workspace: string): Disposable {
  writeFileSync(join(store, `${BUSY}${id}`), workspace, { mode: 0o600 })
  return { [Symbol.dispose]: () => notBusy(store, id) }
}

/** A set that could not be put back stays busy, so that it is tried again. */
export function notBusy(store: string, id: string): void {
  if (!existsSync(join(setFolder(store, id), 'stuck'))) discard(join(store, `${BUSY}${id}`))
}

/** Sets that some process began to work on and did not finish. */
export function busyIn(store: string): string[] {
  return namesIn(store).flatMap((name) => (name.startsWith(BUSY) ? [name.slice(BUSY.length)] : []))
}

/** @throws the system's error */
export function workspaceOfBusy(store: string, id: string): string {
  return readFileSync(join(store, `${BUSY}${id}`), 'utf8')
}

/** Removes what only the command and the judgement needed; the layer can hold much that did not change. Never throws. */
export function tidy(folder: string): void {
  const trash = join(folder, 'gone')
  // What cannot be moved stays until the set is forgotten.
  attempt(() => {
    mkdirSync(trash, { recursive: true, mode: 0o700 })
    for (const name of ['up', 'work', 'mnt', 'lower', 'cache', 'index', 'index.git', 'up.git', 'work.git', 'mnt.git', 'lower.git'])
      moveAway(join(folder, name), join(trash, name))
  })
  void removeTree(trash).catch(() => undefined)
}

/** @returns false when there is nothing to move */
function moveAway(from: string, to: string): boolean {
  return unlessMissing(() => renameSync(from, to) ?? true) ?? false
}

/** The name of a plan that was taken back. */
export const TRIED = 'tried'

/**
 * Recognises the entries that a plan moved and put back: their times changed, but nobody else touched them.
 * @returns whether an entry is as the plan found it, and changed last when the plan was taken back @throws when the plan is damaged
 */
export function triedIn(folder: string): (raw: RawName, now: EntryStat) => boolean {
  const path = join(folder, TRIED)
  const mark = lstatSync(path, { bigint: true, throwIfNoEntry: false })
  if (mark === undefined) return () => false
  const bases = new Map(readPlan(path).items.map((item) => [rawName(item), item.base]))
  return (raw, now) => {
    const base = bases.get(raw)
    return base !== undefined && isSame(base, now, { copied: true }) && base.mode === now.mode && BigInt(now.changed) <= mark.ctimeNs
  }
}

type Widened = { readonly raw: RawName; readonly mode: number }

const FILE = 'widened'

/** Remembers on disk the mode of a folder that is widened while a change set is applied, so that it is restored even after a crash. */
export function rememberMode(folder: string, widened: Widened): void {
  appendFileSync(join(folder, FILE), `${JSON.stringify(widened)}\n`, { mode: 0o600 })
}

/** Restores the modes, deepest folder first. Skips folders that no longer exist and those in `settled`. */
export function restoreModes(folder: string, workspace: Tree, settled: ReadonlySet<RawName> = new Set()): void {
  for (const { raw, mode } of remembered(folder).toReversed()) if (!settled.has(raw)) restore(workspace, { raw, mode })
  discard(join(folder, FILE))
}

function restore(workspace: Tree, { raw, mode }: Widened): void {
  unlessCode(['ENOENT', 'ENOTDIR', 'ELOOP', 'ESTALE'], () => {
    chmodSync(slot(workspace.folder(raw)), mode)
    workspace.forget(raw)
  })
}

function remembered(folder: string): Widened[] {
  const text = unlessMissing(() => readFileSync(join(folder, FILE), 'utf8')) ?? ''
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line): Widened => JSON.parse(line))
}
