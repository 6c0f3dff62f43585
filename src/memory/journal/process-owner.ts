/** Identifies the process that owns a run, so that a restart never treats a living process's run as dead. */

import { readFileSync } from 'node:fs'
import { attempt, hasCode } from '../../kit/errors.ts'
import { statFields } from '../../kit/proc.ts'

/** Returns "pid@start time": the start time distinguishes a process from a later one with an equal pid. Outside Linux it is "pid@0". */
export function thisProcess(): string {
  return ownerOf(process.pid)
}

/** Returns the identity of another process. */
export function ownerOf(pid: number): string {
  return `${pid}@${startOf(pid) ?? '0'}`
}

/** Returns true in doubt: the run is then left alone, and a later start checks again. */
export function isAlive(owner: string): boolean {
  const [pid = '', started = ''] = owner.split('@')
  if (!/^[1-9][0-9]*$/.test(pid)) return false
  const now = started === '0' || started === '' ? undefined : startOf(Number(pid))
  return now === undefined ? signalReaches(Number(pid)) : now === started
}

/** Returns boot and start tick of a process; undefined when it does not exist, is hidden (hidepid), or there is no /proc. */
function startOf(pid: number): string | undefined {
  return attempt(() => {
    const field = statFields(readFileSync(`/proc/${pid}/stat`, 'latin1'))
    if (field(3) === 'Z') return 'a zombie'
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').slice(0, 8)
    return `${field(22)}-${boot}`
  })
}

function signalReaches(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return hasCode(error, 'EPERM')
  }
}
