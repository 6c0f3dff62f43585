/**
 * Gives each worker process on one state folder its own folder for its copy. A worker that starts again gets the folder of its predecessor, so
 * that a session which remembers paths can continue.
 */

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { namesIn } from '../../../kit/proc.ts'
import { thisProcess } from '../../../memory/journal/process-owner.ts'
import { isOwned, ownerIn, takeOwnership } from '../../../memory/recovery/owner-file.ts'
import { removeTree } from '../../../workspace/changes/tree/tree.ts'
import { markOf } from '../child/child-processes.ts'

const most = 1_000

/** Returns the folder of this process, and creates what is missing. @throws the system's error */
export function takeSlot(folder: string): string {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  for (let number = 0; number < most; number++) {
    const path = join(folder, `run-${number}`)
    if (ownerIn(ownerFile(path)) === thisProcess() || takeOwnership(ownerFile(path))) return path
  }
  throw new Error(`more than ${most} workers use ${folder}`)
}

const ownerFile = (slot: string) => `${slot}.owner`

/** Removes copies whose workers have ended. Change sets, and copies of tasks that wait, lie in the same folder and stay. */
export async function removeLeftovers(folder: string): Promise<void> {
  for (const name of namesIn(folder)) {
    const path = join(folder, name)
    if (/^run-\d+$/.test(name) && !isOwned(ownerFile(path))) await removeTree(path).catch(() => undefined)
  }
}

/** Removes the copies of an earlier version, which were named by agent and process: `sysadmin-4711` or `sysadmin-4711-TASK-001`. */
export async function removeOlderLeftovers(folder: string, agentId: string): Promise<void> {
  for (const name of namesIn(folder)) {
    const pid = name.startsWith(`${agentId}-`) ? /^(\d+)(-TASK-\d+)?$/.exec(name.slice(agentId.length + 1))?.[1] : undefined
    if (pid !== undefined && markOf(Number(pid)) === undefined) await removeTree(join(folder, name)).catch(() => undefined)
  }
}
