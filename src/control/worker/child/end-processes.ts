/** Ends the processes of one run: politely, then by force, and also those that left their group. */

import { endGroup } from '../../../service/supervise.ts'
import { isAlive, type ProcessMark, processesOfRun } from './process-facts.ts'

/** How long a child has between SIGTERM and SIGKILL, in ms. */
export const termGraceMs = 5_000
const ROUNDS = 20

/** Sends SIGKILL to each of these processes and to the group that it leads, if it is still the same process. */
export function killMarked(marks: readonly ProcessMark[]): number {
  return marks.filter((mark) => {
    if (!isAlive(mark)) return false
    endGroup(mark.pid, 'SIGKILL')
    return signal(mark.pid)
  }).length
}

/**
 * Kills whatever still has the token of the run in its environment, until nothing has: a process may fork while we look.
 * @returns how many processes it ended
 */
export async function killLeftovers(tokenDigest: string): Promise<number> {
  const ended = new Set<number>()
  for (let round = 0; round < ROUNDS; round++) {
    const found = processesOfRun(tokenDigest)
    if (found.length === 0) break
    killMarked(found)
    for (const { pid } of found) ended.add(pid)
    await Bun.sleep(1 + round)
  }
  return ended.size
}

function signal(pid: number): boolean {
  try {
    return process.kill(pid, 'SIGKILL')
  } catch {
    return false
  }
}
