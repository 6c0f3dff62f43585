/**
 * Gives each worker process on one state folder its own folder for its copy. A worker that starts again gets the folder of its predecessor, so
 * that a session which remembers paths can continue.
 */

import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { namesIn } from '../../../kit/proc.ts'
import { removeTree } from '../../../workspace/changes/tree/tree.ts'
import { isAlive, jsonAt, markOf, type ProcessMark, processMark } from '../child/child-processes.ts'

const most = 1_000

/** Returns the folder of this process, and creates what is missing. @throws the system's error */
export function takeSlot(folder: string): string {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  for (let number = 0; number < most; number++) {
    const path = join(folder, `run-${number}`)
    if (isOurs(path) || own(path)) return path
  }
  throw new Error(`more than ${most} workers use ${folder}`)
}

const ownerFile = (slot: string) => `${slot}.owner`

function ownerOf(slot: string): ProcessMark | undefined {
  return processMark.safeParse(jsonAt(ownerFile(slot))).data
}

function isOurs(slot: string): boolean {
  return ownerOf(slot)?.pid === process.pid && isOwned(slot)
}

function isOwned(slot: string): boolean {
  const owner = ownerOf(slot)
  return owner !== undefined && isAlive(owner)
}

/** Writes the owner file whole and only once, also when two workers start at the same time. */
function own(slot: string): boolean {
  if (isOwned(slot)) return false
  const draft = `${ownerFile(slot)}.${process.pid}`
  writeFileSync(draft, JSON.stringify(markOf(process.pid)), { mode: 0o600 })
  try {
    takeAway(slot)
    linkSync(draft, ownerFile(slot))
    return true
  } catch {
    return false
  } finally {
    rmSync(draft, { force: true })
  }
}

/** Removes the owner file of a dead process. Only one process can move it; a process that moved the file of a living one puts it back. */
function takeAway(slot: string): void {
  const away = `${ownerFile(slot)}.${process.pid}.dead`
  try {
    renameSync(ownerFile(slot), away)
  } catch {
    return
  }
  const owner = processMark.safeParse(JSON.parse(readFileSync(away, 'utf8'))).data
  if (owner && isAlive(owner)) linkSync(away, ownerFile(slot))
  rmSync(away, { force: true })
}

/** Removes copies whose workers have ended. Change sets, and copies of tasks that wait, lie in the same folder and stay. */
export async function removeLeftovers(folder: string): Promise<void> {
  for (const name of namesIn(folder)) {
    const path = join(folder, name)
    if (/^run-\d+$/.test(name) && !isOwned(path)) await removeTree(path).catch(() => undefined)
  }
}

/** Removes the copies of an earlier version, which were named by agent and process: `sysadmin-4711` or `sysadmin-4711-TASK-001`. */
export async function removeOlderLeftovers(folder: string, agentId: string): Promise<void> {
  for (const name of namesIn(folder)) {
    const pid = name.startsWith(`${agentId}-`) ? /^(\d+)(-TASK-\d+)?$/.exec(name.slice(agentId.length + 1))?.[1] : undefined
    if (pid !== undefined && markOf(Number(pid)) === undefined) await removeTree(join(folder, name)).catch(() => undefined)
  }
}
