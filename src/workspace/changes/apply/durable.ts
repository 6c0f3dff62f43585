/** Puts what was written on the disk before a plan names it. */

import { closeSync, openSync, readFileSync } from 'node:fs'
import type { Libc } from '../tree/libc.ts'

const SMALL_BYTES = 4 * 1024 * 1024
/** With more than this waiting for the disk, a flush of the whole file system takes too long to wait for in this process. */
const QUIET_KIB = 16 * 1024

/** Flushes the file system of a folder: at once when that is quick, otherwise in a child process. @throws the system's error */
export async function flush(libc: Libc, folder: string, bytes: number): Promise<void> {
  if ((bytes > SMALL_BYTES || waitingKib() > QUIET_KIB) && (await flushedByChild(folder))) return
  const descriptor = openSync(folder, 'r')
  try {
    libc.flush(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

function waitingKib(): number {
  try {
    const text = readFileSync('/proc/meminfo', 'latin1')
    return ['Dirty', 'Writeback'].reduce((sum, name) => sum + Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)?.[1] ?? 0), 0)
  } catch {
    return 0
  }
}

/** @returns false where there is no `sync` that knows single file systems */
async function flushedByChild(folder: string): Promise<boolean> {
  try {
    return (await Bun.spawn(['sync', '-f', folder], { stdio: ['ignore', 'ignore', 'ignore'] }).exited) === 0
  } catch {
    return false
  }
}
