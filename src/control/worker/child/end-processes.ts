/** Ends the processes of one run: politely, then by force, and also those that left their group. */

import { readdirSync, readFileSync } from 'node:fs'
import { startTick } from '../../../kit/proc.ts'
import { sha256 } from '../../../kit/sha256.ts'
import { endGroup } from '../../../service/supervise.ts'

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

/** `started`: in ticks since the boot. */
export type ProcessMark = { readonly pid: number; readonly started: string }

/** @returns undefined for a process that does not exist, has ended or cannot be read */
export function markOf(pid: number): ProcessMark | undefined {
  const started = startTick(pid)
  return started === undefined ? undefined : { pid, started }
}

export function isAlive({ pid, started }: ProcessMark): boolean {
  return startTick(pid) === started
}

/** Finds the processes whose environment holds the run token with this SHA-256, wherever they moved since they were started. */
export function processesOfRun(tokenDigest: string): readonly ProcessMark[] {
  return pids().flatMap((pid) => (digestOfToken(pid) === tokenDigest ? (markOf(pid) ?? []) : []))
}

function pids(): readonly number[] {
  try {
    return readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []))
  } catch {
    return []
  }
}

const variable = 'CONTROLPLANE_API_KEY='

function digestOfToken(pid: number): string | undefined {
  if (pid === process.pid) return undefined
  try {
    const line = readFileSync(`/proc/${pid}/environ`, 'latin1')
      .split('\0')
      .find((each) => each.startsWith(variable))
    return line === undefined ? undefined : sha256(line.slice(variable.length))
  } catch {
    return undefined
  }
}
