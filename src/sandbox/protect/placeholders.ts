/** Place holders for protected names that do not exist: a mount needs something to stand on. Gone again when the last command is. */

import { chmodSync, closeSync, lstatSync, mkdirSync, openSync, readdirSync, renameSync, rmdirSync, unlinkSync, writeSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { Libc } from '../libc.ts'

/** Nobody sets these by hand, so that a place holder left by a crash is known for what it is. Moving a folder needs its write bit. */
const MARK = 0o1700
const [LOCK_SH, LOCK_EX, LOCK_NB, LOCK_UN] = [1, 2, 4, 8]
const TRIES = 50

/** Git reads this file even when it is empty, and fails; this content means "here". */
export const gitStub = { name: 'commondir', content: './\n', mode: 0o1400 } as const

export type Stubs = {
  /** Resolves when place holders may be made and will stay until `release`. */
  acquire(): Promise<void>
  /** False when nobody could create that name anyway: the folder is read-only. */
  make(path: string): boolean
  release(): void
}

type Making = { readonly workspace: string; readonly pool: string; readonly libc: Libc }

/**
 * Commands of several processes may run in one workspace: each holds a shared lock on the folder, and only who gets it alone, after
 * its last command, takes the place holders away. The kernel drops the lock of a process that dies.
 */
export function createStubs({ workspace, pool: folder, libc }: Making): Stubs {
  const pool = createPool(folder)
  let commands = 0
  let lock = -1
  const made = new Set<string>()
  const clear = () => {
    for (const path of made) take(path, pool)
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
      // Held alone only for the microseconds of a clean-up; a stranger who keeps it makes us no worse than without.
      for (let attempt = 0; attempt < TRIES && libc.flock(lock, LOCK_SH | LOCK_NB) !== 0; attempt++) await Bun.sleep(1)
    },
    make(path) {
      if (!isStub(path) && !put(path, pool)) return false
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

/** Folders, for a mount of a file costs four times as much. */
function put(path: string, pool: Pool): boolean {
  try {
    if (basename(path) === gitStub.name) writeGitStub(path)
    else if (!pool.give(path)) mkdirSync(path, { mode: MARK })
    return true
  } catch (error) {
    if (['EACCES', 'EPERM', 'EROFS'].includes(code(error))) return false
    // Another process was faster; its place holder serves us as well.
    if (code(error) === 'EEXIST' && (basename(path) === gitStub.name || isStub(path))) return true
    throw error
  }
}

function writeGitStub(path: string): void {
  const file = openSync(path, 'wx', 0o600)
  writeSync(file, gitStub.content)
  closeSync(file)
  chmodSync(path, gitStub.mode)
}

type Pool = {
  /** Moves a kept folder to `path`; false when none can be had. */
  give(path: string): boolean
  /** Moves an empty folder here; puts it back when somebody was just filling it. */
  keep(path: string): void
}

/** Moving a folder is twenty times as cheap as making and removing one, so they are kept for the next command, of whichever process. */
function createPool(folder: string): Pool {
  const state: { names?: string[] } = {}
  return {
    give(path) {
      state.names ??= readdirSync(folder)
      const name = state.names.pop()
      return name !== undefined && moved(join(folder, name), path)
    },
    keep(path) {
      const name = crypto.randomUUID()
      const held = join(folder, name)
      if (!moved(path, held)) rmdirSync(path)
      else if (readdirSync(held).length > 0) renameSync(held, path)
      else state.names?.push(name)
    },
  }
}

/** False when the workspace is on another file system, or when another process was faster. */
function moved(from: string, to: string): boolean {
  try {
    renameSync(from, to)
    return true
  } catch {
    return false
  }
}

/** Only what is still exactly as we made it. */
function take(path: string, pool: Pool): void {
  try {
    if (!isStub(path)) return
    if (basename(path) === gitStub.name) unlinkSync(path)
    else pool.keep(path)
  } catch {
    // gone, or filled by somebody: theirs now
  }
}

/** By its mark: also that of another process, or one left by a crash. */
export function isStub(path: string): boolean {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  if (stat === undefined) return false
  if (stat.isDirectory()) return (stat.mode & 0o7777) === MARK
  return stat.isFile() && (stat.mode & 0o7777) === gitStub.mode && stat.size === gitStub.content.length && basename(path) === gitStub.name
}

function code(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}
