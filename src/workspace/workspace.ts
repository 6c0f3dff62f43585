/** Opens the workspace, the only access to the user's files: each access opens the file first and then judges the opened file. */

import { lstatSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import type { By, Check, Deleted, EntryType, FileRefusal, FolderListing, ListEntry, Originals, Workspace } from './contract.ts'
import { explain, flags, type Handle, hold, realPath, slot } from './descriptor.ts'
import { createLocator, kindOf, type Locator, quote } from './locate-path.ts'
import { contentOf, readBytes, readText, scan, stat } from './read-file.ts'
import { children, sizeOf, walk } from './walk.ts'
import { editText, previewEdit } from './write/edit.ts'
import { writeBytes, writeText } from './write/write-file.ts'

export type WorkspaceOptions = { readonly root: string; readonly check: Check; readonly home?: string; readonly originals?: Originals }

/**
 * `home` is what "~/" stands for; without `originals` a write cannot be undone and nothing is deleted. Linux only (O_PATH, /proc/self/fd).
 * @throws when `root` is not a folder that can be opened
 */
export function openWorkspace({ originals, ...options }: WorkspaceOptions): Workspace {
  const locator = createLocator(options)
  return {
    root: locator.root,
    readText: (path, range) => readText(locator, path, range),
    readBytes: (path, limits) => readBytes(locator, path, limits),
    list: (path, limits) => list(locator, path, limits),
    writeText: (path, text, by) => writeText(locator, path, text, { originals, by }),
    writeBytes: (path, bytes, by) => writeBytes(locator, path, bytes, { originals, by }),
    editText: (path, change, by) => editText(locator, path, change, { originals, by }),
    delete: (path, { recursive, by }) => deleteEntry({ locator, given: path, recursive, originals, by }),
    previewEdit: (path, change) => previewEdit(locator, path, change),
    stat: (path) => stat(locator, path),
    walk: (path, { onSkip } = {}) => walk(locator, path, onSkip),
    scan: (path, options) => scan(locator, path, options),
  }
}

/** Counting stops at this many entries; the total is then a lower bound. */
const MAX_SEEN = 100_000

const MAX_DEPTH = 16

type ListOptions = { readonly depth?: number; readonly maxEntries: number }

/** Lists a folder some levels deep, with an exact count of the entries it leaves out. */
function list(locator: Locator, given: string, { depth = 1, maxEntries }: ListOptions): FolderListing | FileRefusal {
  const found = locator.locate(given, 'read')
  if (!found.ok) return found
  using held = found.held
  if (!found.stat.isDirectory()) return { ok: false, message: `${quote(given)} is ${kindOf(found.stat)}, not a folder` }
  const seen = { entries: [], total: 0, complete: true }
  try {
    visit({ locator, seen, maxEntries }, { folder: held, above: '', depth: Math.min(depth, MAX_DEPTH) })
  } catch (error) {
    return { ok: false, message: `cannot list ${quote(given)}: ${explain(error)}` }
  }
  return { ok: true, path: locator.show(found.real), ...seen }
}

type ListState = { entries: ListEntry[]; total: number; complete: boolean }
type ListWalk = { readonly locator: Locator; readonly seen: ListState; readonly maxEntries: number }
type Spot = { readonly folder: Handle; readonly above: string; readonly depth: number }

function visit(survey: ListWalk, { folder, above, depth }: Spot): void {
  const { seen, maxEntries } = survey
  for (const { name, type } of children(folder)) {
    if (seen.total >= MAX_SEEN) {
      seen.complete = false
      return
    }
    const path = join(above, name)
    if (seen.total++ < maxEntries) seen.entries.push({ path, type, size: type === 'file' ? sizeOf(folder, name) : undefined })
    if (type === 'directory' && depth > 1) enter(survey, { folder, above: path, depth: depth - 1 }, name)
  }
}

/** A folder that may not be opened stays in the list, without its contents. */
function enter(survey: ListWalk, { folder, above, depth }: Spot, name: string): void {
  try {
    using child = hold(slot(folder, name), flags.childFolder)
    const real = realPath(child)
    if (real !== undefined && survey.locator.check(real, 'read').ok) visit(survey, { folder: child, above, depth })
    else survey.seen.complete = false
  } catch {
    survey.seen.complete = false
  }
}

/** A larger deletion needs a command. */
const MOST = 50_000

type Deletion = {
  readonly locator: Locator
  readonly given: string
  readonly recursive: boolean
  readonly originals?: Originals
  readonly by?: By
}

/** Deletes a file, link or folder as a change that can be undone, after the gate has judged every path that goes with it. Never rejects. */
async function deleteEntry(deletion: Deletion): Promise<Deleted | FileRefusal> {
  const { locator, given, originals, by } = deletion
  const path = given.replace(/(?<=.)\/+$/, '')
  if (['', '.', '..', '/', '~'].includes(basename(path))) return { ok: false, message: `${quote(given)} does not name a file or folder` }
  const found = locator.locate(dirname(path), 'read')
  if (!found.ok) return found
  using folder = found.held
  try {
    const entries = gather(deletion, folder, join(found.real, basename(path)))
    if (!Array.isArray(entries)) return entries
    if (originals === undefined) return { ok: false, message: `${quote(given)} was not deleted: it could not be undone here` }
    const files = entries.filter(({ type }) => type === 'file')
    const refusal = originals.unseen?.(files.map(({ real }) => ({ path: locator.show(real), read: () => contentOf(locator, real)?.bytes })))
    if (refusal !== undefined) return refusal
    const done = await originals.delete(
      entries.map(({ real }) => relative(locator.root, real)),
      by,
    )
    if (!done.ok) return { ok: false, message: `${quote(given)} was not deleted: ${done.message}` }
    const folders = entries.filter(({ type }) => type === 'directory').length
    return { ok: true, path: locator.show(join(found.real, basename(path))), files: entries.length - folders, folders }
  } catch (error) {
    return { ok: false, message: `${quote(given)} was not deleted: ${explain(error)}` }
  }
}

type Doomed = { readonly real: string; readonly type: EntryType }

/** @returns the entry and everything below it, parents first @throws the system's error */
function gather({ locator, given, recursive }: Deletion, folder: Handle, real: string): Doomed[] | FileRefusal {
  const type = typeOf(folder, basename(real))
  if (type === undefined) return { ok: false, message: `${quote(given)} does not exist` }
  if (!real.startsWith(`${locator.root}/`))
    return {
      ok: false,
      denied: 'path.outside_workspace',
      message: `${quote(given)} is not in the workspace, so its deletion could not be undone`,
    }
  const entries: Doomed[] = []
  const refusal = collect({ locator, entries }, folder, { real, type })
  if (refusal !== undefined) return refusal
  if (entries.length > 1 && !recursive)
    return {
      ok: false,
      message: `${quote(given)} is a folder that is not empty (${entries.length - 1} below it); pass "recursive": true to delete them too`,
    }
  return entries
}

function collect(collecting: { locator: Locator; entries: Doomed[] }, folder: Handle, entry: Doomed): FileRefusal | undefined {
  const { locator, entries } = collecting
  const verdict = locator.check(entry.real, 'write')
  if (!verdict.ok) return { ok: false, denied: verdict.rule, message: verdict.reason }
  if (entries.length >= MOST) return { ok: false, message: `there are more than ${MOST} entries to delete; use the shell` }
  entries.push(entry)
  if (entry.type !== 'directory') return undefined
  using inner = hold(slot(folder, basename(entry.real)), flags.childFolder)
  for (const { name, type } of children(inner)) {
    const refusal = collect(collecting, inner, { real: join(entry.real, name), type })
    if (refusal !== undefined) return refusal
  }
  return undefined
}

function typeOf(folder: Handle, name: string): EntryType | undefined {
  const stat = lstatSync(slot(folder, name), { throwIfNoEntry: false })
  if (stat === undefined) return undefined
  if (stat.isDirectory()) return 'directory'
  if (stat.isFile()) return 'file'
  return stat.isSymbolicLink() ? 'link' : 'other'
}
