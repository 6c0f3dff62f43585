/** Removes a folder of any size and with any permissions without making the caller wait for a large one. */

import { chmodSync, lstatSync, readdirSync, rmdirSync, type Stats, unlinkSync } from 'node:fs'
import { fixedPath } from '../install.ts'
import { bytePath, bytesOf } from './layer-files.ts'

/** Removing so many names takes some 20 ms. */
const AT_ONCE = 1_000

/** Folders may lack permissions: the kernel makes such ones for its own use, and a command can make others. */
const script = 'chmod -R u+rwX -- "$1" 2>/dev/null; rm -rf -- "$1"'

/** A small folder is gone when it returns; another process removes the rest of a large one. */
export function removeTree(folder: string): void {
  try {
    removeSome(bytePath(folder), { left: AT_ONCE })
  } catch {
    const env = { PATH: fixedPath }
    Bun.spawn(['/bin/sh', '-c', script, 'sh', folder], { cwd: '/', env, stdio: ['ignore', 'ignore', 'ignore'], detached: true }).unref()
  }
}

/** @throws Error when there is more to remove than `budget` allows, or something cannot be removed this way */
function removeSome(path: string, budget: { left: number }): void {
  const stat = lstatSync(bytesOf(path), { throwIfNoEntry: false })
  if (stat === undefined) return
  if (--budget.left < 0) throw new Error('too much to remove at once')
  if (!stat.isDirectory()) {
    unlinkSync(bytesOf(path))
    return
  }
  widen(path, stat, 0o700)
  // The kernel keeps the size of a folder that was large once.
  if (stat.size > 200 * AT_ONCE) throw new Error('too much to read at once')
  for (const name of readdirSync(bytesOf(path), { encoding: 'buffer' })) removeSome(`${path}/${name.toString('latin1')}`, budget)
  rmdirSync(bytesOf(path))
}

/** Gives us the missing permissions for a file or folder of ours. */
export function widen(path: string, { mode }: Pick<Stats, 'mode'>, needed: number): void {
  if ((mode & needed) !== needed) chmodSync(bytesOf(path), (mode & 0o7777) | needed)
}
