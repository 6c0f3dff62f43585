/** Identifies the process that owns a run, so that a restart never treats a living process's run as dead. */

import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { attempt, hasCode, unlessMissing } from '../../kit/errors.ts'
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

/** Returns the owner that a file names; undefined when there is no file. */
export function ownerIn(file: string): string | undefined {
  return unlessMissing(() => readFileSync(file, 'utf8'))
}

/** Tells whether the process that the file names lives. */
export function isOwned(file: string): boolean {
  const owner = ownerIn(file)
  return owner !== undefined && isAlive(owner)
}

/** Names this process in the file, whole and only once, also when two processes try at the same time. @returns false while another one lives */
export function takeOwnership(file: string): boolean {
  const [draft, away] = [`${file}.${process.pid}`, `${file}.${process.pid}.dead`]
  if (isOwned(file)) return false
  try {
    writeFileSync(draft, thisProcess(), { mode: 0o600 })
    // Only one process can move the mark of a dead one, and one that moved the mark of a living one puts it back.
    unlessMissing(() => renameSync(file, away) ?? true)
    const isBack = isOwned(away)
    linkSync(isBack ? away : draft, file)
    return !isBack
  } catch {
    return false
  } finally {
    for (const each of [draft, away]) rmSync(each, { force: true })
  }
}
