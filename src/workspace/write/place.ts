/** Opens the folder of a write by descriptor, checks it after opening, and creates missing folders one level at a time. */

import { accessSync, constants, mkdirSync, type Stats } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { succeeds, unlessCode, unlessMissing } from '../../kit/errors.ts'
import type { FileRefusal } from '../contract.ts'
import { explain, flags, type Handle, hold, realPath, slot } from '../descriptor.ts'
import { claim } from '../git/repository.ts'
import { kindOf, type Locator, quote } from '../locate-path.ts'
import { sweepTemporary } from '../sweep.ts'

/** `previous` is the file that will be replaced. The caller disposes `folder`. */
export type WritePlace = {
  readonly ok: true
  readonly folder: Handle
  readonly name: string
  readonly real: string
  readonly previous?: Stats
  /** Absolute paths of the folders that were made on the way, the outer ones first. */
  readonly madeFolders: readonly string[]
}

export function place(locator: Locator, given: string): WritePlace | FileRefusal {
  if (/[/\\]$/.test(given)) return { ok: false, message: `${quote(given)} names a folder; give the path of a file` }
  const found = locator.locate(given, 'write')
  if (!found.ok) return found.missing === undefined ? found : inFolder(locator, given, found.missing)
  using held = found.held
  if (!found.stat.isFile()) return { ok: false, message: `${quote(given)} is ${kindOf(found.stat)}; it cannot be replaced by a file` }
  if (!mayWrite(held, found.stat)) return { ok: false, message: `${quote(given)} is read-only (mode ${modeOf(found.stat)})` }
  return inFolder(locator, given, found.real, found.stat)
}

function mayWrite(held: Handle, stat: Stats): boolean {
  if ((stat.mode & 0o222) === 0) return false
  return succeeds(() => accessSync(slot(held), constants.W_OK))
}

function modeOf(stat: Stats): string {
  return (stat.mode & 0o777).toString(8).padStart(3, '0')
}

function inFolder(locator: Locator, given: string, real: string, previous?: Stats): WritePlace | FileRefusal {
  const way: WriteAttempt = { locator, given, made: [] }
  try {
    return checked(way, { folder: openFolder(way, dirname(real)), name: basename(real), previous })
  } catch (error) {
    if (error instanceof Refused) return error.refusal
    return { ok: false, message: `cannot write ${quote(given)}: ${explain(error)}` }
  }
}

/** A write in progress and the path it was given. */
type WriteAttempt = { readonly locator: Locator; readonly given: string; readonly made: string[] }

function checked(way: WriteAttempt, { folder, name, previous }: { folder: Handle; name: string; previous?: Stats }): WritePlace {
  try {
    const { above, claimed } = addable(way, folder, name)
    if (way.locator.isNew(above)) sweepTemporary(folder)
    return { ok: true, folder: until(folder, claimed), name, real: join(above, name), previous, madeFolders: way.made }
  } catch (error) {
    folder[Symbol.dispose]()
    throw error
  }
}

/** Disposes of the claim together with the folder, after the file was written. */
function until(folder: Handle, claimed: Disposable): Handle {
  return {
    fd: folder.fd,
    [Symbol.dispose]() {
      claimed[Symbol.dispose]()
      folder[Symbol.dispose]()
    },
  }
}

class Refused extends Error {
  constructor(readonly refusal: FileRefusal) {
    super(refusal.message)
  }
}

function refused(given: string, rule?: string): Refused {
  if (rule === undefined) return new Refused({ ok: false, message: `the folder of ${quote(given)} was removed meanwhile; try again` })
  const message = `${quote(given)} leads through a symbolic link to a place that the rule "${rule}" refuses`
  return new Refused({ ok: false, denied: rule, message })
}

/**
 * Checks that this name may be added to the folder at its current path: another process may have replaced a folder between the check and
 * its creation.
 * @throws Refused, or the system's error
 */
function addable({ locator, given }: WriteAttempt, folder: Handle, name: string): { above: string; claimed: Disposable } {
  const above = realPath(folder)
  const verdict = above === undefined ? undefined : locator.check(join(above, name), 'write')
  if (above === undefined || !verdict?.ok) throw refused(given, verdict?.ok === false ? verdict.rule : undefined)
  const claimed = claim({ locator, given, folder, adds: name })
  if (!claimed.ok) throw new Refused(claimed)
  return { above, claimed }
}

/** @throws Refused, or the system's error */
function openFolder(way: WriteAttempt, path: string): Handle {
  const missing: string[] = []
  for (let at = path; ; at = dirname(at)) {
    const held = existing(at)
    if (held !== undefined) return missing.reduce((above, name) => descend(way, above, name), held)
    missing.unshift(basename(at))
  }
}

function existing(path: string): Handle | undefined {
  return path === '/' ? hold(path, flags.folder) : unlessMissing(() => hold(path, flags.folder))
}

function descend(way: WriteAttempt, above: Handle, name: string): Handle {
  using _ = above
  const { above: path, claimed } = addable(way, above, name)
  using _claimed = claimed
  const isMade = unlessCode(['EEXIST'], () => mkdirSync(slot(above, name), 0o777) ?? true)
  if (isMade) way.made.push(join(path, name))
  return hold(slot(above, name), flags.childFolder)
}
