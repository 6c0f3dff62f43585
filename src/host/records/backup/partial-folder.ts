/** Builds a folder or file under another name and renames it when it is complete, so that no partial result ever looks complete. */

import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { atEnd } from '../../../kit/errors.ts'
import { realDisk } from '../../../memory/agent-files/disk.ts'
import { isAlive, thisProcess } from '../../../memory/journal/process-owner.ts'
import { FailureError } from '../../failure.ts'

const mark = '.partial-'

/** Tells whether a name is that of a backup which is being written, or was never completed. */
export function isPartial(name: string): boolean {
  return name.includes(mark)
}

/**
 * `build` gets an empty folder beside the target; the folder, or the `part` of it, becomes the target when `build` has ended. Nothing is left
 * when it fails. @throws FailureError when something is at the target already
 */
export async function built<T>(target: string, build: (folder: string) => Promise<T>, part = ''): Promise<T> {
  assertFree(target)
  removeAbandoned(target)
  const partial = `${target}${mark}${thisProcess()}`
  mkdirSync(partial, { recursive: true, mode: 0o700 })
  using _end = atEnd(() => rmSync(partial, { recursive: true, force: true }))
  const result = await build(partial)
  assertFree(target)
  renameSync(join(partial, part), target)
  realDisk.syncFolder(dirname(target))
  return result
}

/** An empty folder counts as free. */
export function assertFree(target: string): void {
  const found = statSync(target, { throwIfNoEntry: false })
  if (found && (!found.isDirectory() || readdirSync(target).length > 0))
    throw new FailureError('error', `"${target}" exists and is not empty; name a folder that is empty or does not exist yet`)
}

/** Removes the partial folders of dead processes. */
function removeAbandoned(target: string): void {
  const folder = dirname(target)
  if (!existsSync(folder)) return
  for (const name of readdirSync(folder)) {
    const start = `${basename(target)}${mark}`
    if (name.startsWith(start) && !isAlive(name.slice(start.length).replace(/\.tree$/, '')))
      rmSync(join(folder, name), { recursive: true, force: true })
  }
}
