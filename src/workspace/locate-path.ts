/** Turns a given path into a checked descriptor: the gate judges the file that was really opened, not only its name. */

import { fstatSync, readlinkSync, type Stats } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { attempt, hasCode } from '../kit/errors.ts'
import type { Access } from '../security/targets/path.ts'
import type { Check, FileRefusal } from './contract.ts'
import { explain, flags, type Handle, hold, realPath, slot } from './descriptor.ts'

export type LocatedFile = { readonly ok: true; readonly held: Handle; readonly real: string; readonly stat: Stats }

export type Locator = {
  readonly root: string
  readonly check: Check
  /** The caller disposes `held`. */
  locate(given: string, access: Access): LocatedFile | FileRefusal
  /** The path to display: relative to the root when it is inside. */
  show(real: string): string
  /** True the first time a folder is passed in. */
  isNew(folder: string): boolean
}

/** @throws when the root is not a folder */
export function createLocator({
  root: given,
  check,
  home,
}: {
  readonly root: string
  readonly check: Check
  readonly home?: string
}): Locator {
  const alias = resolve(given)
  using folder = hold(alias, flags.folder)
  const root = realPath(folder)
  if (root === undefined) throw new Error(`the workspace folder "${given}" was removed while it was opened`)

  const known = new Set<string>()
  const isNew = (folder: string) => known.size < known.add(folder).size
  const show = (real: string) => (real === root ? '.' : relative(root, real))
  return { root, check, show, isNew, locate: (path, access) => locate({ given: path, access, alias, root, check, show, home }) }
}

function relative(root: string, real: string): string {
  const prefix = root === '/' ? '/' : `${root}/`
  return real.startsWith(prefix) ? real.slice(prefix.length) : real
}

type LocateQuestion = {
  readonly given: string
  readonly access: Access
  readonly alias: string
  readonly root: string
  readonly check: Check
  readonly show: (real: string) => string
  readonly home?: string
}

function locate(question: LocateQuestion): LocatedFile | FileRefusal {
  const { given, access, check } = question
  if (given === '') return { ok: false, message: 'the path is empty; "." is the workspace itself' }
  if (given.includes('\0') || !given.isWellFormed()) return { ok: false, message: `${quote(given)} is not a valid path` }
  const absolute = absoluteOf(question)
  // Checks the name first: a path outside is refused before the file system is asked, so the answer reveals nothing about it.
  const byName = check(absolute, access)
  if (!byName.ok) return { ok: false, denied: byName.rule, message: byName.reason }
  try {
    return opened(question, hold(absolute, flags.look))
  } catch (error) {
    return absent(question, absolute, error)
  }
}

/** The root may have been given through a symbolic link; a path through the same link means the same place. */
function absoluteOf({ given, alias, root, home }: LocateQuestion): string {
  const path = resolve(root, home !== undefined && (given === '~' || given.startsWith('~/')) ? home + given.slice(1) : given)
  if (path === alias) return root
  return path.startsWith(`${alias}/`) ? join(root, path.slice(alias.length + 1)) : path
}

function opened(question: LocateQuestion, held: Handle): LocatedFile | FileRefusal {
  const real = realPath(held)
  const verdict = real === undefined ? undefined : question.check(real, question.access)
  if (real !== undefined && verdict?.ok) return { ok: true, held, real, stat: fstatSync(held.fd) }
  held[Symbol.dispose]()
  if (verdict?.ok === false) return leadsOut(question.given, verdict.rule)
  return { ok: false, message: `${quote(question.given)} was removed while it was opened; try again` }
}

/** The message is the same whether or not the target exists. */
function leadsOut(given: string, rule: string): FileRefusal {
  return { ok: false, denied: rule, message: `${quote(given)} leads through a symbolic link to a place that the rule "${rule}" refuses` }
}

function absent(question: LocateQuestion, absolute: string, error: unknown): FileRefusal {
  const { given, access, check, show } = question
  const end = destination(absolute)
  if (end === undefined) return { ok: false, message: `cannot open ${quote(given)}: its symbolic links go round in circles` }
  const verdict = check(end.path, access)
  if (!verdict.ok) return leadsOut(given, verdict.rule)
  if (!hasCode(error, 'ENOENT')) return { ok: false, message: `cannot open ${quote(given)}: ${explain(error)}` }
  return {
    ok: false,
    missing: end.path,
    message: `${quote(given)} does not exist; the nearest folder that does is ${quote(show(end.folder))}`,
  }
}

/** @returns where a path that cannot be opened would be, and the last folder on the way that exists */
function destination(absolute: string): { readonly path: string; readonly folder: string } | undefined {
  let path = absolute
  for (let hop = 0; hop < 40; hop++) {
    const { folder, rest, link } = nearest(path)
    if (link === undefined) return { path: join(folder, ...rest), folder }
    path = resolve(folder, link, ...rest.slice(1))
  }
  return undefined
}

type Nearest = { readonly folder: string; readonly rest: readonly string[]; readonly link?: string }

function nearest(path: string): Nearest {
  const rest: string[] = []
  for (let above = path; above !== '/'; above = dirname(above)) {
    const found = above === path ? undefined : nearestIn(above, rest)
    if (found !== undefined) return found
    rest.unshift(basename(above))
  }
  return nearestIn('/', rest) ?? { folder: '/', rest }
}

function nearestIn(above: string, rest: readonly string[]): Nearest | undefined {
  return attempt(() => {
    using held = hold(above, flags.folder)
    const folder = realPath(held)
    return folder === undefined ? undefined : { folder, rest: [...rest], link: linkIn(held, rest[0]) }
  })
}

function linkIn(folder: Handle, name: string | undefined): string | undefined {
  return attempt(() => (name === undefined ? undefined : readlinkSync(slot(folder, name))))
}

export function quote(given: string): string {
  return JSON.stringify(given.length > 300 ? `${given.slice(0, 300)}…` : given)
}

/** Ensures that only regular files are read or replaced; the message names what a pipe, device or socket is. */
export function openRegular(locator: Locator, given: string, access: Access): LocatedFile | FileRefusal {
  const found = locator.locate(given, access)
  if (!found.ok || found.stat.isFile()) return found
  found.held[Symbol.dispose]()
  return { ok: false, message: `${quote(given)} is ${kindOf(found.stat)}, not a regular file` }
}

export function kindOf(stat: Stats): string {
  if (stat.isDirectory()) return 'a folder'
  if (stat.isFIFO()) return 'a named pipe (FIFO)'
  if (stat.isSocket()) return 'a socket'
  if (stat.isCharacterDevice()) return 'a character device'
  if (stat.isBlockDevice()) return 'a block device'
  return stat.isFile() ? 'a file' : 'of an unknown kind'
}

/** Opens the checked file for reading through its descriptor and passes it to `use`; system errors become a refusal. */
export function reading<T>(given: string, looked: Handle, use: (file: Handle) => T | FileRefusal): T | FileRefusal {
  try {
    using file = hold(slot(looked), flags.read)
    return use(file)
  } catch (error) {
    return { ok: false, message: `cannot read ${quote(given)}: ${explain(error)}` }
  }
}
