/**
 * Prevents writes that turn a folder into a git repository, and writes into a repository outside a `.git` folder: git runs programs that
 * the settings of such a folder name, as soon as anyone runs git status there.
 */

import { closeSync, lstatSync, openSync, unlinkSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { unlessMissing } from '../../kit/errors.ts'
import { folded } from '../../kit/text.ts'
import { type GitPart, gitParts, isGitFolder } from '../../security/changes/git/git-folders.ts'
import { isUnder } from '../../security/targets/path.ts'
import type { FileRefusal } from '../contract.ts'
import { flags, type Handle, hold, realPath, slot } from '../descriptor.ts'
import { type Locator, quote } from '../locate-path.ts'
import { realPlace } from '../real-place.ts'
import { purposesIn, temporaryName } from '../sweep.ts'
import { namedAround } from './read-settings.ts'

/**
 * `folder` exists and may be written. `adds` is the name that the write adds or replaces in it: the file, or the first missing folder
 * above the file.
 */
export type Addition = { readonly locator: Locator; readonly given: string; readonly folder: Handle; readonly adds: string }

/** The caller disposes it once the new file or folder exists. */
export type Claim = Disposable & { readonly ok: true }

/** @throws the system's error */
export function claim({ locator, given, folder, adds }: Addition): Claim | FileRefusal {
  const around = repositoryAround(folder, locator.root)
  if (around !== undefined) return refused(`${quote(given)} lies in the git repository ${quote(locator.show(around))}`)
  if (isNamed(folder, adds, locator.root)) return named(given)
  const part = gitParts.find((name) => name.toLowerCase() === folded(adds))
  if (part === undefined) return { ok: true, [Symbol.dispose]() {} }
  const announced = announce(folder, part)
  // The order matters: a part whose announcement is already gone now exists on disk.
  const soon = purposesIn(folder)
  const names = [...soon, ...present(folder)]
  if (!isGitFolder((name) => names.includes(name))) return announced
  announced[Symbol.dispose]()
  const where = quote(locator.show(realPath(folder) ?? 'its folder'))
  return refused(`${quote(given)} would make the folder ${where} a git repository (HEAD with objects and refs, or with commondir)`)
}

function refused(what: string): FileRefusal {
  const message = `${what}, and git runs programs that a repository's settings name; ask the operator to do it by hand`
  return { ok: false, denied: 'path.protected', message }
}

/** Tells whether git's settings make it run what would be written, or read it as more settings. */
function isNamed(folder: Handle, adds: string, top: string): boolean {
  const above = realPath(folder)
  if (above === undefined) return false
  const { run, included } = namedAround(above, { home: homedir(), top })
  return [...run, ...included].some((path) => [path, realPlace(path)].some((place) => isUnder(join(above, adds), place)))
}

function named(given: string): FileRefusal {
  const message = `${quote(given)} is a hook, program or file that the settings of a git repository name; ask the operator to change it by hand`
  return { ok: false, denied: 'path.protected', message }
}

/**
 * Announces the new part in the folder before looking at the existing parts: of two writers that each add one part, at least the later one
 * sees the other's part or announcement. An announcement left by a crash causes refusals for an hour, until it is swept.
 */
function announce(folder: Handle, part: GitPart): Claim {
  const own = hold(slot(folder), flags.folder)
  const path = slot(own, temporaryName(part))
  try {
    closeSync(openSync(path, 'wx', 0o600))
  } catch (error) {
    own[Symbol.dispose]()
    throw error
  }
  return {
    ok: true,
    [Symbol.dispose]() {
      using _ = own
      unlessMissing(() => unlinkSync(path))
    },
  }
}

/** @returns the nearest folder, up to the root, that is itself a repository; a folder in a work tree below a repository is allowed */
function repositoryAround(folder: Handle, root: string): string | undefined {
  let path = realPath(folder) ?? '/'
  for (let above = '.'; ; above += '/..') {
    const names = present(folder, above)
    if (isGitFolder((name) => names.includes(name))) return path
    if (path === root || path === '/' || has(folder, `${above}/.git`)) return undefined
    path = dirname(path)
  }
}

function present(folder: Handle, above = '.'): string[] {
  return gitParts.filter((name) => has(folder, `${above}/${name}`))
}

function has(folder: Handle, name: string): boolean {
  return lstatSync(slot(folder, name), { throwIfNoEntry: false }) !== undefined
}
