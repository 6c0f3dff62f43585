/** The cheapest mount that makes a folder read as empty and lets nobody write in it. */

import { readFileSync } from 'node:fs'
import type { Layer } from '../confinement.ts'

export type Cover = (path: string) => readonly string[]

/**
 * The message queue file system: mounting it once more costs no new file system, a tenth of a tmpfs, and with a limit of no bytes
 * (limits.ts) nothing can be made in it. It belongs to the IPC namespace; without one of our own, or in kernels that lack it, a tmpfs.
 */
export function chooseCover(without: ReadonlySet<Layer>): Cover {
  const limited = !without.has('ipc namespace') && !without.has('limits')
  return limited && /\tmqueue$/m.test(readFileSync('/proc/filesystems', 'utf8')) ? queue : memory
}

const queue: Cover = (path) => ['--mqueue', path]

const memory: Cover = (path) => ['--perms', '0555', '--size', '4096', '--tmpfs', path]
