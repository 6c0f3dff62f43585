/** Carries out a plan that is on disk, to its end or back to the beginning. */

import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { atEnd, attempt } from '../../../kit/errors.ts'
import type { Log } from '../../../runtime/port.ts'
import { explain } from '../../descriptor.ts'
import type { Applied } from '../contract.ts'
import { type Item, type MovePlan, original, renamePlan } from '../set/plan.ts'
import { finishedIn, outsideOf, rememberMode, restoreModes, TRIED } from '../set/set-folder.ts'
import { namesOf, rawName } from '../tree/entry.ts'
import type { Libc } from '../tree/libc.ts'
import { gitBeside, gitInPlace, openTree, type Pace, type Tree } from '../tree/tree.ts'
import { Conflicting, type Moves, move } from './moves.ts'

type Performing = {
  readonly folder: string
  readonly plan: MovePlan
  /** The plan was begun by a process that died. */
  readonly again: boolean
  readonly libc: Libc
  readonly log: Log
  readonly pace: Pace
  readonly onStep?: () => void
}

/** Never rejects. */
export async function perform(performing: Performing): Promise<Applied> {
  try {
    await forth(performing)
    return { ok: true, count: performing.plan.items.length }
  } catch (error) {
    return await takeBack(performing, error)
  }
}

async function forth(performing: Performing): Promise<void> {
  const { folder, plan, again, libc, onStep } = performing
  const { header, items } = plan
  using trees = openTrees(performing)
  const { workspace, view, undo } = trees
  const [from, to] = header.to === 'after' ? [view, undo] : [undo, view]
  const foreign = header.to === 'after'
  await move({ ...common(performing, workspace), items, trees: { workspace, from, to }, again, foreign })
  restoreModes(folder, workspace, settledBy(items))
  const places = [header.workspace, outsideOf(folder)?.common ?? header.workspace]
  if (workspace.device !== view.device) for (const place of new Set(places)) await flush(libc, place, Number.POSITIVE_INFINITY)
  onStep?.()
  renamePlan(folder, 'plan', `done-${finishedIn(folder).length + 1}`)
}

/** Puts everything back as it was before the plan, which is on disk under the name `plan`. Never rejects. */
export async function takeBack(performing: Performing, why: unknown): Promise<Extract<Applied, { ok: false }>> {
  const { folder, plan, log } = performing
  const { header, items } = plan
  const left: string[] = []
  try {
    using trees = openTrees(performing)
    const { workspace, view, undo } = trees
    const [from, to] = header.to === 'after' ? [undo, view] : [view, undo]
    const reversed = items.map(reverse)
    const onProblem = (item: Item, error: unknown) => left.push(`${JSON.stringify(item.path)}: ${reasonText(error)}`)
    await move({
      ...common(performing, workspace),
      items: reversed,
      trees: { workspace, from, to },
      again: true,
      foreign: false,
      onProblem,
    })
    restoreModes(folder, workspace, settledBy(reversed))
  } catch (error) {
    left.push(reasonText(error))
  }
  renamePlan(folder, 'plan', left.length === 0 ? TRIED : 'stuck')
  const message =
    left.length === 0
      ? 'nothing was changed'
      : `some paths could not be put back (${left.slice(0, 5).join('; ')}); what they were is in ${folder}`
  if (left.length > 0) log('error', 'a change set could be neither applied nor taken back', { folder, left: left.slice(0, 20) })
  const conflicts = why instanceof Conflicting ? [{ path: namesOf(why.raw).path, reason: why.reason }] : []
  return { ok: false, conflicts, message: `${reasonText(why)}; ${message}`, ...(left.length > 0 && { stuck: true }) }
}

function reverse(item: Item): Item {
  const { after: before, base: source, source: base } = item
  return { ...item, before, after: original(item), base, source }
}

function reasonText(error: unknown): string {
  return error instanceof Conflicting ? error.message : explain(error)
}

function settledBy(items: readonly Item[]): ReadonlySet<string> {
  return new Set(items.filter(({ after }) => after?.kind === 'folder').map(rawName))
}

function common(
  { plan, libc, pace, onStep }: Performing,
  workspace: Tree,
): Pick<Moves, 'temporary' | 'libc' | 'pace' | 'onStep' | 'owner'> {
  return { temporary: plan.header.temporary, libc, pace, onStep, ...(process.geteuid?.() === 0 && { owner: workspace.owner }) }
}

function openTrees({ folder, plan: { header }, libc }: Performing) {
  using opened = new DisposableStack()
  const open = (name: 'up' | 'undo') => opened.use(openKeptTree(libc, folder, name))
  const workspace = opened.use(openWorkspaceTree(libc, folder, header.workspace))
  const trees = { workspace, view: open('up'), undo: open('undo') }
  const handles = opened.move()
  return { ...trees, [Symbol.dispose]: () => handles[Symbol.dispose]() }
}

/** Folders that have to be widened are remembered in the folder of the change set. */
export function openWorkspaceTree(libc: Libc, folder: string, root: string): Tree {
  const outside = gitInPlace(outsideOf(folder))
  return openTree({ root, outside, quickLstat: libc.lstat, onWiden: (raw, mode) => rememberMode(folder, { raw, mode }) })
}

/** Makes the folders that are missing. */
export function openKeptTree(libc: Libc, folder: string, name: 'up' | 'undo'): Tree {
  const root = join(folder, name)
  const outside = gitBeside(root, outsideOf(folder))
  for (const each of outside ? [root, outside.root] : [root]) mkdirSync(each, { recursive: true, mode: 0o700 })
  return openTree({ root, outside, isPrivate: true, quickLstat: libc.lstat })
}

const SMALL_BYTES = 4 * 1024 * 1024
/** With more than this waiting for the disk, a flush of the whole file system takes too long to wait for in this process. */
const QUIET_KIB = 16 * 1024

/**
 * Flushes the file system of a folder, so that what was written is on the disk before a plan names it: at once when that is quick,
 * otherwise in a child process. @throws the system's error
 */
export async function flush(libc: Libc, folder: string, bytes: number): Promise<void> {
  if ((bytes > SMALL_BYTES || waitingKib() > QUIET_KIB) && (await flushedByChild(folder))) return
  const descriptor = openSync(folder, 'r')
  using _end = atEnd(() => closeSync(descriptor))
  libc.flush(descriptor)
}

function waitingKib(): number {
  const text = attempt(() => readFileSync('/proc/meminfo', 'latin1')) ?? ''
  return ['Dirty', 'Writeback'].reduce((sum, name) => sum + Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)?.[1] ?? 0), 0)
}

/** @returns false where there is no `sync` that knows single file systems */
async function flushedByChild(folder: string): Promise<boolean> {
  try {
    return (await Bun.spawn(['sync', '-f', folder], { stdio: ['ignore', 'ignore', 'ignore'] }).exited) === 0
  } catch {
    return false
  }
}
