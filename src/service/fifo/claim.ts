/** One agent a folder of FIFOs: two would take each other's lines. */

import { existsSync, openSync, rmSync, statSync, symlinkSync } from 'node:fs'

/**
 * The lock is a link to the folder by way of a descriptor of its holder: it leads nowhere once that process has ended, however it ended.
 * @returns its path, to be removed by whoever goes on without the FIFOs; nothing when another holds it.
 * @throws EEXIST when somebody takes it at the same moment
 */
export function claim(dir: string): string | undefined {
  const lock = `${dir}/.server.lock`
  if (existsSync(lock) && statSync(lock).ino === statSync(dir).ino) return undefined
  rmSync(lock, { force: true })
  symlinkSync(`/proc/${process.pid}/fd/${openSync(dir, 'r')}`, lock)
  return lock
}
