/** Where a write goes: the folder held by descriptor, checked after it was opened, and created one level at a time when missing. */

import { accessSync, constants, mkdirSync, type Stats } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { Refusal } from './contract.ts'
import { codeOf, explain, flags, type Held, hold, realPath, slot } from './descriptor.ts'
import { type Locator, quote } from './locate.ts'
import { kindOf } from './regular.ts'
import { sweepTemporary } from './sweep.ts'

/** `previous` is the file that will be replaced. The caller disposes `folder`. */
export type Place = { readonly ok: true; readonly folder: Held; readonly name: string; readonly real: string; readonly previous?: Stats }

export function place(locator: Locator, given: string): Place | Refusal {
  if (/[/\\]$/.test(given)) return { ok: false, message: `${quote(given)} names a folder; give the path of a file` }
  const found = locator.locate(given, 'write')
  if (!found.ok) return found.missing === undefined ? found : inFolder(locator, given, found.missing)
  using held = found.held
  if (!found.stat.isFile()) return { ok: false, message: `${quote(given)} is ${kindOf(found.stat)}; it cannot be replaced by a file` }
  if (!mayWrite(held, found.stat)) return { ok: false, message: `${quote(given)} is read-only (mode ${modeOf(found.stat)})` }
  return inFolder(locator, given, found.real, found.stat)
}

function mayWrite(held: Held, stat: Stats): boolean {
  if ((stat.mode & 0o222) === 0) return false
  try {
    accessSync(slot(held), constants.W_OK)
    return true
  } catch {
    return false
  }
}

function modeOf(stat: Stats): string {
  return (stat.mode & 0o777).toString(8).padStart(3, '0')
}

function inFolder(locator: Locator, given: string, real: string, previous?: Stats): Place | Refusal {
  try {
    return checked(locator, { given, folder: openFolder(locator, dirname(real)), name: basename(real), previous })
  } catch (error) {
    if (error instanceof Moved) return refused(given, error.rule)
    return { ok: false, message: `cannot write ${quote(given)}: ${explain(error)}` }
  }
}

type Opened = { readonly given: string; readonly folder: Held; readonly name: string; readonly previous?: Stats }

function checked(locator: Locator, { given, folder, name, previous }: Opened): Place | Refusal {
  const above = realPath(folder)
  const real = above === undefined ? undefined : join(above, name)
  const verdict = real === undefined ? undefined : locator.check(real, 'write')
  if (above !== undefined && real !== undefined && verdict?.ok) {
    if (locator.isNew(above)) sweepTemporary(folder)
    return { ok: true, folder, name, real, previous }
  }
  folder[Symbol.dispose]()
  return refused(given, verdict?.ok === false ? verdict.rule : undefined)
}

function refused(given: string, rule?: string): Refusal {
  if (rule === undefined) return { ok: false, message: `the folder of ${quote(given)} was removed meanwhile; try again` }
  return { ok: false, denied: rule, message: `${quote(given)} leads through a symbolic link to a place that the rule "${rule}" refuses` }
}

/** Another process put something else in the way between the check and the creation of a folder. */
class Moved extends Error {
  constructor(readonly rule?: string) {
    super('moved')
  }
}

/** @throws Moved, or the system's error */
function openFolder(locator: Locator, path: string): Held {
  const missing: string[] = []
  for (let at = path; ; at = dirname(at)) {
    const held = existing(at)
    if (held !== undefined) return missing.reduce((above, name) => descend(locator, above, name), held)
    missing.unshift(basename(at))
  }
}

function existing(path: string): Held | undefined {
  try {
    return hold(path, flags.folder)
  } catch (error) {
    if (codeOf(error) === 'ENOENT' && path !== '/') return undefined
    throw error
  }
}

function descend(locator: Locator, above: Held, name: string): Held {
  using _ = above
  const real = realPath(above)
  const verdict = real === undefined ? undefined : locator.check(join(real, name), 'write')
  if (!verdict?.ok) throw new Moved(verdict?.ok === false ? verdict.rule : undefined)
  try {
    mkdirSync(slot(above, name), 0o777)
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error
  }
  return hold(slot(above, name), flags.childFolder)
}
