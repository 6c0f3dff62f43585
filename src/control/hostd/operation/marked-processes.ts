/** Finds and ends what a call started, also in sessions of its own, by the mark in the environment of its processes. */

import { readdirSync, readFileSync } from 'node:fs'

/** The one variable that every operation has besides those of the catalogue. */
export const markName = 'BRAIDCLAW_HOSTD_CALL'

/** A process that replaces its environment escapes this; a service manager's control group does not let it go. @returns how many were found */
export function endMarked(call: string): number {
  const ended = new Set<number>()
  // What is found may start another process before it ends.
  for (let round = 0; round < 5; round += 1) {
    const found = markedBy(call).filter((pid) => !ended.has(pid))
    if (found.length === 0) break
    for (const pid of found) {
      ended.add(pid)
      kill(pid)
    }
  }
  return ended.size
}

function markedBy(call: string): number[] {
  const mark = `${markName}=${call}`
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => environmentOf(pid).includes(mark))
}

function environmentOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0')
  } catch {
    // It ended, or it belongs to a user whose processes we cannot have started.
    return []
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It ended by itself.
  }
}
