/** Chooses the cheapest mount that makes a folder appear empty and refuses all writes. */

import { readFileSync } from 'node:fs'
import type { Layer } from '../confinement.ts'

export type Cover = (path: string) => readonly string[]

/**
 * Prefers the message queue file system: another mount of it creates no new file system and costs a tenth of a tmpfs, and with a limit of
 * zero bytes (resource-limits.ts) nobody can create anything in it. It belongs to the IPC namespace, so a sandbox without its own IPC
 * namespace, or a kernel without message queues, gets a tmpfs.
 */
export function chooseCover(without: ReadonlySet<Layer>): Cover {
  const limited = !without.has('ipc namespace') && !without.has('limits')
  return limited && /\tmqueue$/m.test(readFileSync('/proc/filesystems', 'utf8')) ? queue : memory
}

const queue: Cover = (path) => ['--mqueue', path]

const memory: Cover = (path) => ['--perms', '0555', '--size', '4096', '--tmpfs', path]
