/** Reads, sets and watches the ESTOP file: while it exists, whatever its content, all tools of all processes of this home are stopped. */

import { closeSync, constants, lstatSync, mkdirSync, openSync, readSync, renameSync, rmSync, watch, writeFileSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { atEnd, hasCode } from '../kit/errors.ts'

/** @returns the reason while stopped, undefined otherwise. An unreadable file counts as a stop. */
export function readStop(path: string): string | undefined {
  try {
    // Usually there is no file; throwing and catching an error for that would cost more than this check.
    const found = lstatSync(path, { throwIfNoEntry: false })
    if (!found) return undefined
    if (!found.isFile()) return `${path} is not a regular file, which counts as stopped`
    return (
      beginningOf(path)
        .replace(/[\p{Cc}\ufffd]+/gu, ' ')
        .trim()
        .slice(0, 500) || 'the emergency stop is set'
    )
  } catch (error) {
    return hasCode(error, 'ENOENT') ? undefined : `${path} cannot be read, which counts as stopped`
  }
}

/** Reads only the beginning, because the file may be huge; opens it without blocking, because it may become a FIFO before that. */
function beginningOf(path: string): string {
  const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  using _end = atEnd(() => closeSync(file))
  const bytes = new Uint8Array(2000)
  return new TextDecoder().decode(bytes.subarray(0, readSync(file, bytes)))
}

/**
 * On a full disk the reason may be lost, but not the stop: an empty file counts too. @throws Error with an errno when the stop was not set.
 */
export function setStop(path: string, reason: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const draft = `${path}.${process.pid}`
  try {
    // The rename prevents a watcher from reading the file before it has the reason.
    writeFileSync(draft, `${reason}\n`, { mode: 0o600 })
    renameSync(draft, path)
  } catch {
    rmSync(draft, { force: true })
    bareStop(path)
  }
}

function bareStop(path: string): void {
  try {
    closeSync(openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK, 0o600))
  } catch (error) {
    if (readStop(path) === undefined) throw error
  }
}

/** @returns whether there was a stop to clear. */
export function clearStop(path: string): boolean {
  const was = readStop(path) !== undefined
  rmSync(path, { force: true, recursive: true })
  return was
}

/** Setting up a watch takes a thread and half a millisecond; a short turn ends before the watch would be useful. */
const watchAfterMs = 100

/**
 * Calls `onStop` whenever the stop is set: a conversation may be stopped, continue after a clear, and be stopped again. It starts the watch
 * after a delay and then checks for a stop that it missed; the runtime checks the stop before each tool anyway.
 * @returns a function that ends the watch
 */
export function watchStop(path: string, onStop: (reason: string) => void): () => void {
  const state = { stamp: stampOf(path), over: false, close: () => {} }
  const look = () => {
    const [before, now] = [state.stamp, stampOf(path)]
    state.stamp = now
    const reason = now === before || state.over ? undefined : readStop(path)
    if (reason !== undefined) onStop(reason)
  }
  const first = setTimeout(() => {
    state.close = watchFile(path, look)
    look()
  }, watchAfterMs)
  first.unref()
  return () => {
    clearTimeout(first)
    state.over = true
    state.close()
  }
}

/** Identifies one setting of the stop, to distinguish it from the next. */
function stampOf(path: string): string {
  try {
    const found = lstatSync(path, { throwIfNoEntry: false })
    return found ? `${found.ino} ${found.mtimeMs}` : 'none'
  } catch {
    return 'unknown'
  }
}

/** Polls the file if the system has no watch left. */
function watchFile(path: string, changed: () => void): () => void {
  try {
    const watcher = watch(dirname(path), (_change, name) => {
      if (name === null || name === basename(path)) changed()
    })
    watcher.unref()
    return () => watcher.close()
  } catch {
    const last = { seen: readStop(path) }
    const timer = setInterval(() => {
      const seen = readStop(path)
      if (seen !== last.seen) changed()
      last.seen = seen
    }, 200)
    timer.unref()
    return () => clearInterval(timer)
  }
}
