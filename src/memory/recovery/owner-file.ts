/** Keeps a file that names the process which owns a folder, so that nobody takes the folder of a living one. */

import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { unlessMissing } from '../../kit/errors.ts'
import { isAlive, thisProcess } from '../journal/process-owner.ts'

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
