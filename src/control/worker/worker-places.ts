/** Names the folders of a worker, separate for each control plane, because two of them may have an agent of the same name, and both a RUN-001. */

import { existsSync, mkdirSync, renameSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join } from 'node:path'
import type { Setup } from '../../host/api.ts'
import { keyFile } from '../manifest/agent-key.ts'
import { removeOlderLeftovers } from './changes/copy-slots.ts'
import { moveWaiting } from './changes/waiting-changes.ts'
import { moveRecords } from './child/child-processes.ts'
import type { WorkerIdentity } from './identify.ts'
import type { WorkerFolders } from './worker-options.ts'

/** `state` holds what children see. Tools cannot read our home, so it lies elsewhere. */
export type WorkerPlaces = Omit<WorkerFolders, 'workspace'> & {
  readonly children: string
  readonly waiting: string
  readonly copies: string
  /** The folder of the key that signs manifests. */
  readonly key: string
}

export function placesOf(setup: Setup, { agentId, planeId }: Pick<WorkerIdentity, 'agentId' | 'planeId'>): WorkerPlaces {
  const { env, home, cwd } = setup.context
  const absolute = (path: string) => (isAbsolute(path) ? path : join(cwd, path))
  return {
    // The name of an agent cannot contain "@".
    ...ownPlaces(setup, `${agentId}@${planeId}`),
    sessions: absolute(env.CONTROLPLANE_SESSION_CWD || join(home, 'control', 'sessions')),
    logs: absolute(env.CONTROLPLANE_AIDER_LOG_DIR || join(home, 'control', 'logs')),
  }
}

function ownPlaces({ context: { env, home } }: Setup, name: string) {
  const state = join(env.XDG_CACHE_HOME || join(env.HOME ?? homedir(), '.cache'), 'braidclaw', 'worker', name)
  return {
    state,
    children: childrenIn(state),
    waiting: join(state, 'waiting-changes.json'),
    copies: join(state, 'copies'),
    key: join(home, 'control', 'agents', name),
  }
}

/** Returns the folder for the records of a worker's children. */
export function childrenIn(state: string): string {
  return join(state, 'children')
}

/**
 * Moves what an earlier version stored for the agent, without regard to its control plane, to `places`: the first control plane that the agent
 * works for gets it. Change sets that wait stay where they are, because the store of the home has links to them.
 */
export async function takeOverOlder(setup: Setup, agentId: string, places: WorkerPlaces): Promise<void> {
  const older = ownPlaces(setup, agentId)
  moveFile(keyFile(older.key), keyFile(places.key))
  if (!existsSync(older.state)) return
  moveRecords(older.children, places.children)
  moveWaiting(older.waiting, places.waiting)
  await removeOlderLeftovers(older.copies, agentId)
}

/** Moves the file once, also when two workers start at the same time. */
function moveFile(from: string, to: string): void {
  if (existsSync(to) || !existsSync(from)) return
  mkdirSync(dirname(to), { recursive: true, mode: 0o700 })
  try {
    renameSync(from, to)
  } catch (error) {
    if (existsSync(from)) throw error
  }
}
