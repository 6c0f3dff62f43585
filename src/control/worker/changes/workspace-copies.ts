/** Gives each run a private copy of the workspace, and keeps what the run changed there as a change set for a person to review. */

import { mkdirSync, realpathSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { Host, Setup } from '../../../host/api.ts'
import { type KeptCopy, keepCopy } from '../../../host/changes/attempts/keep-copy.ts'
import { attemptFolders, copyWorkspace, type Manifest, takeChanges } from '../../../host/changes/attempts/workspace-copy.ts'
import { patchText } from '../../../host/changes/patch-text.ts'
import { workspaceOf } from '../../../host/setup/workspace-folder.ts'
import { once } from '../../../kit/once.ts'
import type { Change } from '../../../runtime/changes.ts'
import { removeTree } from '../../../workspace/changes/tree/remove-tree.ts'
import { startGuard } from '../child/guard.ts'
import type { CopyRequest, EarlierRun, KeptSet, WorkspaceCopy } from '../worker-options.ts'
import { removeLeftovers, takeSlot } from './copy-slots.ts'
import { parkCopy, unparkCopy } from './parked-copies.ts'

export type CopyOptions = {
  readonly host: Pick<Host, 'changes'>
  readonly setup: Setup
  /** For the copies of one agent of one control plane. Our home is closed to tools, so it lies elsewhere. */
  readonly folder: string
  readonly agentId: string
  /** Called with the change set that now waits. */
  readonly onKept: (kept: { readonly runId: string; readonly id: string }) => void
}

/** A copy with what is needed to find the changes in it. */
type Copied = { readonly workspace: string; readonly before: Manifest; readonly earlier?: EarlierRun }

const mostPatch = 1024 * 1024

/** One run at a time has its copy; copies of tasks that wait for somebody lie beside it. */
export function createCopies(options: CopyOptions): (request: CopyRequest) => Promise<WorkspaceCopy> {
  const tidied = removeLeftovers(options.folder)
  const slot = once(async () => takeSlot(options.folder))
  return async (request) => {
    await tidied
    return copyForRun({ ...options, slot: await slot.get() }, request)
  }
}

/** @throws FailureError when the workspace is too large or cannot be copied, and the reason of the signal: then nothing is left of the copy */
async function copyForRun(copies: CopyOptions & { readonly slot: string }, request: CopyRequest): Promise<WorkspaceCopy> {
  // One name for all runs of this process: its conversations then share their settings. A run that was killed may have left something there.
  await removeTree(copies.slot)
  const base = join(realpathSync(copies.folder), basename(copies.slot))
  const copied = (await earlierCopy(copies, base, request)) ?? (await freshCopy(copies, base, request))
  const { copy, set, upper } = attemptFolders(base, 1)
  const { workspace, before, earlier } = copied
  const state = { parked: false }
  return {
    ...{ path: copy, home: homeIn(base), ...(earlier ? { earlier } : {}) },
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

/** A session goes on only where its copy was: it remembers paths. */
async function earlierCopy({ setup, folder }: CopyOptions, base: string, { taskId, attempt }: CopyRequest): Promise<Copied | undefined> {
  const workspace = workspaceOf(setup)
  const found = await unparkCopy(folder, base, { task_id: taskId, attempt, workspace })
  if (!found) return undefined
  const { before, parked } = found
  const { runner, session } = parked
  return { workspace, before, earlier: { runner, ...(session !== undefined && parked.base === base ? { session } : {}) } }
}

async function freshCopy({ setup }: CopyOptions, base: string, { signal }: CopyRequest): Promise<Copied> {
  const workspace = workspaceOf(setup)
  const { copy, set, upper } = attemptFolders(base, 1)
  for (const path of [copy, upper, homeIn(base)]) mkdirSync(path, { recursive: true, mode: 0o700 })
  // Whatever changes in the workspace from now on was changed by somebody else.
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

type Keeping = {
  readonly request: CopyRequest
  readonly base: string
  readonly set: string
  readonly workspace: string
  readonly changes: readonly Change[]
}

async function keepChanges({ onKept, ...copies }: CopyOptions, { request, ...made }: Keeping): Promise<KeptSet> {
  const { runId, taskId, command } = request
  const about = { run: runId, call: taskId, conversation: copies.agentId, tool: 'worker', command }
  // Two control planes may both have a RUN-001.
  const id = `${runId}-${taskId}-${crypto.randomUUID().slice(0, 8)}`
  const kept = await keepCopy({ ...made, host: copies.host, setup: copies.setup, id, about })
  onKept({ runId, id })
  return describe(kept)
}

function describe({ id, review, set }: KeptCopy): KeptSet {
  return {
    state: 'waiting',
    id,
    digest: review.digest,
    summary: review.summary,
    patch: patchText(set).slice(0, mostPatch),
    ...(review.verdict === 'deny' ? { refused: review.reason } : {}),
  }
}

async function forget({ host }: CopyOptions, id: string | undefined): Promise<void> {
  if (id === undefined) return
  const { store } = await host.changes()
  await store.drop(id).catch(() => undefined)
}
