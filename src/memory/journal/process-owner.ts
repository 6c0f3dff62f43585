/** Which process owns a run, so that a restart never takes a living process's work for dead. */

import { readFileSync } from 'node:fs'
import { statFields } from '../../kit/proc.ts'

/** "pid@start time": the start time tells a process from a later one with the same number. Elsewhere than Linux it is "pid@0". */
export function thisProcess(): string {
  return ownerOf(process.pid)
}

/** The same of another process. */
export function ownerOf(pid: number): string {
  return `${pid}@${startOf(pid) ?? '0'}`
}

/** In doubt alive: then work is left alone and a later start looks again. */
export function isAlive(owner: string): boolean {
  const [pid = '', started = ''] = owner.split('@')
  if (!/^[1-9][0-9]*$/.test(pid)) return false
  const now = started === '0' || started === '' ? undefined : startOf(Number(pid))
  return now === undefined ? signalReaches(Number(pid)) : now === started
}

/** Boot and start tick of a process; undefined when there is none, none to be seen (hidepid), or no /proc. */
function startOf(pid: number): string | undefined {
  try {
    const field = statFields(readFileSync(`/proc/${pid}/stat`, 'latin1'))
    if (field(3) === 'Z') return 'a zombie'
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').slice(0, 8)
    return `${field(22)}-${boot}`
  } catch {
    return undefined
  }
}

function signalReaches(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
