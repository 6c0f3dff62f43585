/**
 * Gives each run a private copy of the workspace, keeps what the run changed there as a change set for a person to review, and keeps the
 * copies of tasks that wait for somebody on disk: a worker that starts later continues with them.
 */

import { mkdirSync, readFileSync, realpathSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { z } from 'zod'
import type { Host, Setup } from '../../../host/api.ts'
import { patchText } from '../../../host/changes/patch-text.ts'
import {
  attemptFolders,
  type CopyChanges,
  copyWorkspace,
  type KeptCopy,
  keepCopy,
  type Manifest,
  manifestText,
  readManifest,
  takeChanges,
} from '../../../host/changes/workspace-copy.ts'
import { workspaceOf } from '../../../host/setup/workspace-folder.ts'
import { attempt } from '../../../kit/errors.ts'
import { lazy } from '../../../kit/lazy.ts'
import { namesIn } from '../../../kit/proc.ts'
import { removeTree } from '../../../workspace/changes/tree/tree.ts'
import type { Task } from '../../contract/task-shapes.ts'
import { jsonAt, startGuard } from '../child/child-processes.ts'
import type { CopyRequest, EarlierRun, ReadTask, RunChanges, WorkspaceCopy } from '../worker-options.ts'
import { removeLeftovers, takeSlot } from './copy-slots.ts'

type CopyOptions = {
  readonly host: Pick<Host, 'changes'>
  readonly setup: Setup
  /** Holds the copies of one agent of one control plane. Tools cannot read our home, so it lies elsewhere. */
  readonly folder: string
  readonly agentId: string
  /** Is called with the change set that now waits. */
  readonly onKept: (keptCopy: { readonly runId: string; readonly id: string }) => void
}

/** Holds what is needed to find the changes in a copy. */
type RunCopy = { readonly workspace: string; readonly before: Manifest; readonly earlier?: EarlierRun }

const mostPatch = 1024 * 1024

/** Makes the copy of one run at a time; copies of tasks that wait for a person lie beside it. */
export function createCopies(options: CopyOptions): (request: CopyRequest) => Promise<WorkspaceCopy> {
  const tidied = removeLeftovers(options.folder)
  const slot = lazy(async () => takeSlot(options.folder))
  return async (request) => {
    await tidied
    return copyForRun({ ...options, slot: await slot.get() }, request)
  }
}

/** @throws FailureError when the workspace is too large or cannot be copied, and the reason of the signal: then nothing is left of the copy */
async function copyForRun(copies: CopyOptions & { readonly slot: string }, request: CopyRequest): Promise<WorkspaceCopy> {
  // All runs of this process use one name, so that its conversations share their settings. A run that was killed may have left files there.
  await removeTree(copies.slot)
  const base = join(realpathSync(copies.folder), basename(copies.slot))
  const copied = (await earlierCopy(copies, base, request)) ?? (await freshCopy(copies, base, request))
  const { copy, set, upper } = attemptFolders(base, 1)
  const { workspace, before, earlier } = copied
  const state = { parked: false }
  return {
    path: copy,
    home: homeIn(base),
    earlier,
    async keep() {
      const changes = await takeChanges({ workspace, before, copy, upper })
      return changes.length === 0 ? { state: 'none' } : keepChanges(copies, { request, base, set, workspace, changes })
    },
    forget: ({ id }) => forget(copies, id),
    async park(run) {
      await parkCopy(copies.folder, { ...run, task_id: request.taskId, attempt: request.attempt, workspace, base }, before)
      state.parked = true
    },
    async remove() {
      if (!state.parked) await removeCopy(copies, { base, copy })
    },
  }
}

/** Continues the session only in the folder where its copy was, because it remembers paths. */
async function earlierCopy({ setup, folder }: CopyOptions, base: string, { taskId, attempt }: CopyRequest): Promise<RunCopy | undefined> {
  const workspace = workspaceOf(setup)
  const found = await unparkCopy(folder, base, { task_id: taskId, attempt, workspace })
  if (!found) return undefined
  const { before, parked } = found
  const { runner, session } = parked
  return { workspace, before, earlier: { runner, session: parked.base === base ? session : undefined } }
}

async function freshCopy({ setup }: CopyOptions, base: string, { signal }: CopyRequest): Promise<RunCopy> {
  const workspace = workspaceOf(setup)
  const { copy, set, upper } = attemptFolders(base, 1)
  for (const path of [copy, upper, homeIn(base)]) mkdirSync(path, { recursive: true, mode: 0o700 })
  // Every later change in the workspace is made by somebody else.
  writeFileSync(join(set, 'start'), '')
  const guards: { stop(): void }[] = []
  try {
    return { workspace, before: await copyWorkspace(workspace, copy, { signal, started: (pid) => void guards.push(startGuard([pid])) }) }
  } catch (error) {
    await removeTree(base)
    throw error
  } finally {
    for (const guard of guards) guard.stop()
  }
}

const homeIn = (base: string) => join(base, 'home')

async function removeCopy({ host }: CopyOptions, { base, copy }: { readonly base: string; readonly copy: string }): Promise<void> {
  // A run may have left folders without permissions; what cannot be removed now is tried again before the next copy.
  await removeTree(base).catch(() => undefined)
  const { store } = await host.changes()
  await store.forgetWorkspace(copy).catch(() => undefined)
}

type ChangesToKeep = Pick<CopyChanges, 'base' | 'set' | 'workspace' | 'changes'> & { readonly request: CopyRequest }

async function keepChanges({ onKept, ...copies }: CopyOptions, { request, ...copied }: ChangesToKeep): Promise<RunChanges> {
  const { runId, taskId, command } = request
  const about = { run: runId, call: taskId, conversation: copies.agentId, tool: 'worker', command }
  // Two control planes may both have a RUN-001, so the id alone is not unique.
  const id = `${runId}-${taskId}-${crypto.randomUUID().slice(0, 8)}`
  const keptCopy = await keepCopy({ ...copied, host: copies.host, setup: copies.setup, id, about })
  onKept({ runId, id })
  return describe(keptCopy)
}

function describe({ id, review, set }: KeptCopy): RunChanges {
  return {
    state: 'waiting',
    id,
    digest: review.digest,
    summary: review.summary,
    patch: patchText(set).slice(0, mostPatch),
    refused: review.verdict === 'deny' ? review.reason : undefined,
  }
}

async function forget({ host }: CopyOptions, id: string | undefined): Promise<void> {
  if (id === undefined) return
  const { store } = await host.changes()
  await store.drop(id).catch(() => undefined)
}

const parkedCopy = z.object({
  task_id: z.string(),
  /** Holds the attempt of the run that waits: only the next one continues with its copy. */
  attempt: z.int(),
  workspace: z.string(),
  /** Holds the path of the copy, which sessions remember. */
  base: z.string(),
  runner: z.string(),
  session: z.optional(z.string()),
})
type ParkedCopy = z.infer<typeof parkedCopy>

const most = 8
const prefix = 'waiting-'
const placeOf = (folder: string, taskId: string) => join(folder, `${prefix}${taskId}`)
const aboutIn = (place: string) => join(place, 'parked.json')
const manifestIn = (place: string) => join(place, 'before.json')

/** Moves the copy at `base` aside. When there are too many, the oldest is removed, and its task starts again. @throws the system's error */
async function parkCopy(folder: string, parked: ParkedCopy, before: Manifest): Promise<void> {
  const place = placeOf(folder, parked.task_id)
  writeFileSync(manifestIn(parked.base), manifestText(before), { mode: 0o600 })
  writeFileSync(aboutIn(parked.base), JSON.stringify(parked), { mode: 0o600 })
  for (const other of oldest(placesIn(folder).filter((each) => each !== place))) await removeTree(other)
  await removeTree(place)
  renameSync(parked.base, place)
}

/** Moves the copy of this task to `base`, which does not exist. @returns undefined when this run cannot continue with one */
async function unparkCopy(
  folder: string,
  base: string,
  run: Pick<ParkedCopy, 'task_id' | 'attempt' | 'workspace'>,
): Promise<{ parked: ParkedCopy; before: Manifest } | undefined> {
  try {
    renameSync(placeOf(folder, run.task_id), base)
  } catch {
    return undefined
  }
  const [parked, before] = [parkedAt(base), manifestAt(base)]
  if (parked && before && parked.attempt + 1 === run.attempt && parked.workspace === run.workspace) return { parked, before }
  await removeTree(base)
  return undefined
}

/** Removes the copies of tasks that have ended, or that another run has claimed since. @throws what `readTask` throws */
export async function tidyParked(folder: string, readTask: ReadTask): Promise<void> {
  for (const place of placesIn(folder)) {
    const parked = parkedAt(place)
    const task = parked && (await readTask(parked.task_id))
    if (!parked || !task || isOver(task, parked)) await removeTree(place).catch(() => undefined)
  }
}

function isOver({ status, attempt }: Pick<Task, 'status' | 'attempt'>, parked: ParkedCopy): boolean {
  return ['completed', 'failed', 'dead', 'cancelled'].includes(status) || attempt > parked.attempt + 1
}

function oldest(places: readonly string[]): readonly string[] {
  const age = (place: string) => statSync(aboutIn(place), { throwIfNoEntry: false })?.mtimeMs ?? 0
  return places.toSorted((a, b) => age(a) - age(b)).slice(0, Math.max(0, places.length - most + 1))
}

function parkedAt(place: string): ParkedCopy | undefined {
  return parkedCopy.safeParse(jsonAt(aboutIn(place))).data
}

function manifestAt(place: string): Manifest | undefined {
  return attempt(() => readManifest(readFileSync(manifestIn(place), 'utf8')))
}

function placesIn(folder: string): readonly string[] {
  return namesIn(folder).flatMap((name) => (name.startsWith(prefix) ? [join(folder, name)] : []))
}
