/**
 * Keeps writes from making a folder a git repository, and out of one that does not lie in a `.git`: git runs programs that the settings in
 * such a folder name, as soon as somebody asks it for the status there.
 */

import { closeSync, lstatSync, openSync, unlinkSync } from 'node:fs'
import { dirname } from 'node:path'
import { folded } from '../security/targets/protected.ts'
import type { Refusal } from './contract.ts'
import { codeOf, flags, type Handle, hold, realPath, slot } from './descriptor.ts'
import { type Locator, quote } from './locate-path.ts'
import { purposesIn, temporaryName } from './sweep.ts'

/** What git looks for in a folder: HEAD, and either both `objects` and `refs` or a `commondir` that says where these are. */
const parts = ['HEAD', 'objects', 'refs', 'commondir'] as const

type Part = (typeof parts)[number]

/** `folder` exists and may be written; `adds` is the name that the write puts into it or replaces: that of the file, or of the first missing folder above it. */
export type Addition = { readonly locator: Locator; readonly given: string; readonly folder: Handle; readonly adds: string }

/** To be disposed when what is added is there. */
export type Claim = Disposable & { readonly ok: true }

/** @throws the system's error */
export function claim({ locator, given, folder, adds }: Addition): Claim | Refusal {
  const around = repositoryAround(folder, locator.root)
  if (around !== undefined) return refused(`${quote(given)} lies in the git repository ${quote(locator.show(around))}`)
  const part = parts.find((name) => name.toLowerCase() === folded(adds))
  if (part === undefined) return { ok: true, [Symbol.dispose]() {} }
  const announced = announce(folder, part)
  // In this order: what is no longer announced by now is there.
  const soon = purposesIn(folder)
  if (!isRepository([...soon, ...present(folder)])) return announced
  announced[Symbol.dispose]()
  const where = quote(locator.show(realPath(folder) ?? 'its folder'))
  return refused(`${quote(given)} would make the folder ${where} a git repository (HEAD with objects and refs, or with commondir)`)
}

function refused(what: string): Refusal {
  const message = `${what}, and git runs programs that a repository's settings name; ask the operator to do it by hand`
  return { ok: false, denied: 'path.protected', message }
}

/**
 * Says in the folder what is about to be added, before looking what is there: of two writers that each add one part, at least the later one
 * sees the other's part or its announcement. One that a crash left makes refusals for an hour, until it is swept.
 */
function announce(folder: Handle, part: Part): Claim {
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
      unlink(path)
    },
  }
}

function unlink(path: string): void {
  try {
    unlinkSync(path)
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error
  }
}

/** The nearest folder from here up to the root that is a repository itself; what lies in a work tree below one is free. */
function repositoryAround(folder: Handle, root: string): string | undefined {
  let path = realPath(folder) ?? '/'
  for (let above = '.'; ; above += '/..') {
    if (isRepository(present(folder, above))) return path
    if (path === root || path === '/' || has(folder, `${above}/.git`)) return undefined
    path = dirname(path)
  }
}

/** Whatever these are: what is no good to git now can become so, and a symbolic link may lead to anything. */
function isRepository(names: readonly string[]): boolean {
  return names.includes('HEAD') && (names.includes('commondir') || (names.includes('objects') && names.includes('refs')))
}

function present(folder: Handle, above = '.'): string[] {
  return parts.filter((name) => has(folder, `${above}/${name}`))
}

function has(folder: Handle, name: string): boolean {
  return lstatSync(slot(folder, name), { throwIfNoEntry: false }) !== undefined
}
