/** Finds the executables of one folder and refuses unsafe ones, without running any. */

import { accessSync, closeSync, constants, openSync, readdirSync, readSync, realpathSync, type Stats, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { attempt, succeeds } from '../../kit/errors.ts'

/** `path` is the path in the folder; `real` is the path with links followed. */
export type ExecutableFile = { readonly path: string; readonly real: string }

/** `known`: an earlier process found and reported it. */
export type RefusedExecutable = { readonly path: string; readonly why: string; readonly known?: true }

export type ExecutableListing =
  | { readonly ok: true; readonly found: readonly ExecutableFile[]; readonly refused: readonly RefusedExecutable[] }
  | { readonly ok: false; readonly why: string }

export type Search = {
  /** Path of a folder or of one executable. */
  readonly at: string
  /**
   * Returns the reason why nothing may run from this real folder, if there is one. It is called for the folder of the name and for the
   * folder of a link's target.
   */
  readonly untrusted: (folder: string) => string | undefined
}

/** Describing runs every executable of a folder, so a folder such as /usr/bin must be a mistake. */
const MOST = 100

/**
 * Returns executables sorted by name. It skips subfolders, hidden files, and files that are neither executable nor scripts. Never throws.
 */
export function findExecutables({ at, untrusted }: Search): ExecutableListing {
  const inspected = stat(at)
  if (!inspected) return { ok: false, why: `${at}: the folder does not exist` }
  if (!inspected.isDirectory()) return sorted([inspect(at, untrusted)])
  const names = list(at)
  if (!names) return { ok: false, why: `${at}: it cannot be read` }
  const candidates = names.filter((name) => !name.startsWith('.')).map((name) => join(at, name))
  const executable = candidates.filter((path) => isExecutable(path, stat(path)))
  if (executable.length > MOST)
    return { ok: false, why: `${at} holds ${executable.length} executables, ${MOST} are the limit; make a folder for your tools alone` }
  return sorted(candidates.map((path) => inspect(path, untrusted)))
}

function sorted(inspected: readonly (ExecutableFile | RefusedExecutable | undefined)[]): ExecutableListing {
  const all = inspected.filter((one) => one !== undefined)
  return { ok: true, found: all.filter((one) => 'real' in one), refused: all.filter((one) => 'why' in one) }
}

function inspect(path: string, untrusted: Search['untrusted']): ExecutableFile | RefusedExecutable | undefined {
  const found = stat(path)
  if (!found) return { path, why: 'it leads nowhere' }
  if (!found.isFile()) return undefined
  if (!isExecutable(path, found))
    return isScript(path) ? { path, why: `it is a script but not executable; run: chmod +x ${path}` } : undefined
  const real = realpathSync(path)
  const folders = [...new Set([realpathSync(dirname(path)), dirname(real)])]
  const open = [real, ...folders].find((each) => isOpen(stat(each)))
  if (open !== undefined) return { path, why: `every user of this machine may write ${open}; run: chmod o-w ${open}` }
  const why = folders.map(untrusted).find((each) => each !== undefined)
  return why === undefined ? { path, real } : { path, why }
}

/** Tells whether every user may replace a file; in a folder with the sticky bit (/tmp), only the owner may. */
function isOpen(found: Stats | undefined): boolean {
  return found !== undefined && (found.mode & 0o002) !== 0 && (found.mode & 0o1000) === 0
}

function isExecutable(path: string, found: Stats | undefined): boolean {
  if (!found?.isFile()) return false
  return succeeds(() => accessSync(path, constants.X_OK))
}

function isScript(path: string): boolean {
  try {
    const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    const begin = Buffer.alloc(2)
    readSync(file, begin)
    closeSync(file)
    return begin.toString('latin1') === '#!'
  } catch {
    return false
  }
}

function stat(path: string): Stats | undefined {
  return attempt(() => statSync(path, { throwIfNoEntry: false }))
}

function list(folder: string): string[] | undefined {
  return attempt(() => readdirSync(folder).toSorted())
}
