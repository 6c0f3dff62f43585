/** Reads from /proc which processes are ours: a process number alone may belong to another process by now. */

import { readdirSync, readFileSync } from 'node:fs'
import { statFields } from '../../../kit/proc.ts'
import { sha256 } from '../../../kit/sha256.ts'

/** `started`: in ticks since the boot. */
export type ProcessMark = { readonly pid: number; readonly started: string }

/** @returns undefined for a process that does not exist, has ended or cannot be read */
export function markOf(pid: number): ProcessMark | undefined {
  try {
    const field = statFields(readFileSync(`/proc/${pid}/stat`, 'latin1'))
    return field(3) === 'Z' || field(3) === 'X' ? undefined : { pid, started: field(22) }
  } catch {
    return undefined
  }
}

export function isAlive({ pid, started }: ProcessMark): boolean {
  return markOf(pid)?.started === started
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
