/** Gives each run a private copy of the workspace, and keeps what the run changed there as a change set for a person to review. */

import { mkdirSync, readdirSync, realpathSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Host, Setup } from '../../../host/api.ts'
import { type KeptCopy, keepCopy } from '../../../host/changes/attempts/keep-copy.ts'
import { attemptFolders, copyWorkspace, type Manifest, takeChanges } from '../../../host/changes/attempts/workspace-copy.ts'
import { patchText } from '../../../host/changes/patch-text.ts'
import { workspaceOf } from '../../../host/setup/workspace-folder.ts'
import type { Change } from '../../../runtime/changes.ts'
import { removeTree } from '../../../workspace/changes/tree/remove-tree.ts'
import { markOf } from '../child/process-facts.ts'
import type { CopyRequest, KeptSet, WorkspaceCopy } from '../worker-options.ts'

export type CopyOptions = {
  readonly host: Pick<Host, 'changes'>
  readonly setup: Setup
  /** Our home is closed to tools, so the copies lie elsewhere. */
  readonly folder: string
  readonly agentId: string
  /** Called with the change set that now waits. */
  readonly onKept: (kept: { readonly runId: string; readonly id: string }) => void
}

/** A copy with what is needed to find the changes in it. */
type Copied = { readonly workspace: string; readonly before: Manifest }
type Copies = CopyOptions & { readonly parked: Map<string, Copied> }

const mostPatch = 1024 * 1024
const mostParked = 8

/** One run at a time has its copy; copies of tasks that wait for somebody lie beside it. */
export function createCopies(options: CopyOptions): (request: CopyRequest) => Promise<WorkspaceCopy> {
  const copies: Copies = { ...options, parked: new Map() }
  const tidied = removeLeftovers(options)
  return async (request) => {
    await tidied
    return copyForRun(copies, request)
  }
}

/** @throws FailureError when the workspace is too large or cannot be copied */
async function copyForRun(copies: Copies, request: CopyRequest): Promise<WorkspaceCopy> {
  const known = copies.parked.get(request.taskId)
  const base = await freshFolder(copies, known ? request.taskId : undefined)
  copies.parked.delete(request.taskId)
  const { copy, set, upper } = attemptFolders(base, 1)
  const copied = known ?? (await copiedInto(copies, base))
  const state = { parked: false }
  return {
    ...{ path: copy, home: homeIn(base), resumes: known !== undefined },
    async keep() {
      const { workspace } = copied
      const changes = takeChanges({ ...copied, copy, upper })
      return changes.length === 0 ? { state: 'none' } : keepChanges(copies, { request, base, set, workspace, changes })
    },
    forget: ({ id }) => forget(copies, id),
    async park() {
      await park(copies, { base, taskId: request.taskId, copied })
      state.parked = true
    },
    async remove() {
      if (!state.parked) await removeCopy(copies, { base, copy })
    },
  }
}

async function copiedInto({ setup }: Copies, base: string): Promise<Copied> {
  const workspace = workspaceOf(setup)
  const { copy, set, upper } = attemptFolders(base, 1)
  for (const path of [copy, upper, homeIn(base)]) mkdirSync(path, { recursive: true, mode: 0o700 })
  // Whatever changes in the workspace from now on was changed by somebody else.
  writeFileSync(join(set, 'start'), '')
  try {
    return { workspace, before: await copyWorkspace(workspace, copy) }
  } catch (error) {
    await removeTree(base)
    throw error
  }
}

const homeIn = (base: string) => join(base, 'home')
const nameOf = ({ agentId }: CopyOptions, taskId?: string) => `${agentId}-${process.pid}${taskId === undefined ? '' : `-${taskId}`}`

/** One name for all runs of this process: its conversations then share their settings. A run that was killed may have left something there. */
async function freshFolder(copies: Copies, parked: string | undefined): Promise<string> {
  const path = join(copies.folder, nameOf(copies))
  await removeTree(path)
  if (parked === undefined) mkdirSync(path, { recursive: true, mode: 0o700 })
  else renameSync(join(copies.folder, nameOf(copies, parked)), path)
  return realpathSync(path)
}

type Parking = { readonly base: string; readonly taskId: string; readonly copied: Copied }

/** The oldest copy goes when there are too many: its task then begins anew. */
async function park(copies: Copies, { base, taskId, copied }: Parking): Promise<void> {
  const place = (id: string) => join(copies.folder, nameOf(copies, id))
  const [oldest] = copies.parked.size < mostParked ? [] : copies.parked.keys()
  if (oldest !== undefined) {
    copies.parked.delete(oldest)
    await removeTree(place(oldest))
  }
  await removeTree(place(taskId))
  renameSync(base, place(taskId))
  copies.parked.set(taskId, copied)
}

async function removeCopy({ host }: Copies, { base, copy }: { readonly base: string; readonly copy: string }): Promise<void> {
  // A run may have left folders without permissions; what cannot be removed now is tried again before the next copy.
  await removeTree(base).catch(() => undefined)
  const { store } = await host.changes()
  await store.forgetWorkspace(copy).catch(() => undefined)
}

/** Copies of workers of this agent that are gone. */
async function removeLeftovers({ folder, agentId }: CopyOptions): Promise<void> {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  for (const name of readdirSync(folder)) {
    const pid = name.startsWith(`${agentId}-`) ? /^(\d+)(-TASK-\d+)?$/.exec(name.slice(agentId.length + 1))?.[1] : undefined
    if (pid !== undefined && markOf(Number(pid)) === undefined) await removeTree(join(folder, name)).catch(() => undefined)
  }
}

type Keeping = {
  readonly request: CopyRequest
  readonly base: string
  readonly set: string
  readonly workspace: string
  readonly changes: readonly Change[]
}

async function keepChanges({ onKept, ...copies }: Copies, { request, ...made }: Keeping): Promise<KeptSet> {
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

async function forget({ host }: Copies, id: string | undefined): Promise<void> {
  if (id === undefined) return
  const { store } = await host.changes()
  await store.drop(id).catch(() => undefined)
}
