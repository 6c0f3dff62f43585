/** Creates place holders for missing protected names, because a mount needs an existing target, and removes them after the last command. */

import { chmodSync, closeSync, lstatSync, mkdirSync, openSync, rmdirSync, unlinkSync, writeSync } from 'node:fs'
import { basename } from 'node:path'
import { errnoOf, hasCode } from '../../kit/errors.ts'
import type { Libc } from '../libc.ts'

/** An unusual mode, so that we recognise a place holder that a crash left behind. */
const MARK = 0o1700
const [LOCK_SH, LOCK_EX, LOCK_NB, LOCK_UN] = [1, 2, 4, 8]
const TRIES = 2_000

/** Git reads this file even when it is empty, and fails; this content means "this folder". */
export const gitStub = { name: 'commondir', content: './\n', mode: 0o1400 } as const

export type Stubs = {
  /** Resolves when place holders may be created; they stay until `release`. */
  acquire(): Promise<void>
  /** Returns false when the folder is read-only, so that nobody could create the name anyway. */
  make(path: string): boolean
  release(): void
}

/**
 * Commands of several processes may run in one workspace. Each process holds a shared lock on the folder. After its last command, a process
 * removes the place holders only if it gets the exclusive lock. The kernel releases the lock of a process that ends.
 */
export function createStubs({ workspace, libc }: { readonly workspace: string; readonly libc: Libc }): Stubs {
  let commands = 0
  let lock = -1
  const made = new Set<string>()
  const clear = () => {
    for (const path of made) take(path)
    made.clear()
  }
  return {
    async acquire() {
      if (++commands > 1) return
      try {
        lock = openSync(workspace, 'r')
      } catch (error) {
        commands--
        throw error
      }
      // The exclusive lock lasts as long as a clean-up, or until a change set is applied. If an unrelated process keeps it, we are no worse
      // off than without a lock.
      for (let attempt = 0; attempt < TRIES && libc.flock(lock, LOCK_SH | LOCK_NB) !== 0; attempt++) await Bun.sleep(1)
    },
    make(path) {
      if (!isStub(path) && !put(path)) return false
      made.add(path)
      return true
    },
    release() {
      if (--commands > 0) return
      if (libc.flock(lock, LOCK_EX | LOCK_NB) === 0) clear()
      libc.flock(lock, LOCK_UN)
      closeSync(lock)
    },
  }
}

/** Creates folders, because a mount on a file costs four times as much. */
function put(path: string): boolean {
  try {
    if (basename(path) === gitStub.name) writeGitStub(path)
    else mkdirSync(path, { mode: MARK })
    return true
  } catch (error) {
    if (['EACCES', 'EPERM', 'EROFS'].includes(errnoOf(error) ?? '')) return false
    // Another process created its place holder first; we use that one.
    if (hasCode(error, 'EEXIST') && (basename(path) === gitStub.name || isStub(path))) return true
    throw error
  }
}

function writeGitStub(path: string): void {
  const file = openSync(path, 'wx', 0o600)
  writeSync(file, gitStub.content)
  closeSync(file)
  chmodSync(path, gitStub.mode)
}

/** Removes only what is still exactly as we created it. */
function take(path: string): void {
  try {
    if (!isStub(path)) return
    if (basename(path) === gitStub.name) unlinkSync(path)
    else rmdirSync(path)
  } catch {
    // It is gone, or another process filled it and owns it now.
  }
}

/** Recognises a place holder by its mode, including those of other processes and those left by a crash. */
export function isStub(path: string): boolean {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  if (stat === undefined) return false
  if (stat.isDirectory()) return (stat.mode & 0o7777) === MARK
  return stat.isFile() && (stat.mode & 0o7777) === gitStub.mode && stat.size === gitStub.content.length && basename(path) === gitStub.name
}
