/** The ESTOP file: there, it stops every tool of every process of this home; how it reads does not matter. */

import { existsSync, mkdirSync, readFileSync, rmSync, watch, writeFileSync } from 'node:fs'
import { basename, dirname } from 'node:path'

/** @returns the reason while stopped, undefined otherwise. A file that cannot be read is a stop too: in doubt, stopped. */
export function readStop(path: string): string | undefined {
  try {
    const text = readFileSync(path, 'utf8').trim().slice(0, 500)
    return text || 'the emergency stop is set'
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ENOENT'
      ? undefined
      : `${path} cannot be read, which counts as stopped`
  }
}

/** On a full disk the reason may be lost, the stop not: an empty file is one too. @throws Error with an errno when there is no stop. */
export function setStop(path: string, reason: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  try {
    writeFileSync(path, `${reason}\n`, { mode: 0o600 })
  } catch (error) {
    if (!existsSync(path)) throw error
  }
}

/** @returns whether there was a stop to lift. */
export function clearStop(path: string): boolean {
  const was = existsSync(path)
  rmSync(path, { force: true, recursive: true })
  return was
}

/** Calls `onStop` once, when the stop appears. The returned function ends the watch. */
export function watchStop(path: string, onStop: (reason: string) => void): () => void {
  const watcher = watch(dirname(path), (_change, name) => {
    if (name !== null && name !== basename(path)) return
    const reason = readStop(path)
    if (reason === undefined) return
    watcher.close()
    onStop(reason)
  })
  watcher.unref()
  return () => watcher.close()
}
