/** Locks a folder of FIFOs for one agent, because two agents would read each other's lines. */

import { existsSync, openSync, rmSync, statSync, symlinkSync } from 'node:fs'

/**
 * The lock is a symlink to the folder through a file descriptor of its holder: it is dangling once that process has ended, however it
 * ended.
 * @returns the path of the lock, which the caller removes if it goes on without the FIFOs; undefined when another process holds it.
 * @throws EEXIST when another process takes it at the same moment
 */
export function claim(dir: string): string | undefined {
  const lock = `${dir}/.server.lock`
  if (existsSync(lock) && statSync(lock).ino === statSync(dir).ino) return undefined
  rmSync(lock, { force: true })
  symlinkSync(`/proc/${process.pid}/fd/${openSync(dir, 'r')}`, lock)
  return lock
}
