/** Deletes a file, link or folder as a change that can be undone, after the gate has judged every path that goes with it. */

import { lstatSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import type { By, Deleted, EntryType, Originals, Refusal } from '../contract.ts'
import { codeOf, explain, flags, type Handle, hold, slot } from '../descriptor.ts'
import { type Locator, quote } from '../locate-path.ts'
import { children } from '../open-folder.ts'

/** More than this is work for a command. */
const MOST = 50_000

export type Deletion = {
  readonly locator: Locator
  readonly given: string
  readonly recursive: boolean
  readonly originals?: Originals
  readonly by?: By
}

/** Never rejects. */
export async function deleteEntry(deletion: Deletion): Promise<Deleted | Refusal> {
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

type Entry = { readonly real: string; readonly type: EntryType }

/** @returns the entry and everything below it, parents first @throws the system's error */
function gather({ locator, given, recursive }: Deletion, folder: Handle, real: string): Entry[] | Refusal {
  const type = typeOf(folder, basename(real))
  if (type === undefined) return { ok: false, message: `${quote(given)} does not exist` }
  if (!real.startsWith(`${locator.root}/`))
    return {
      ok: false,
      denied: 'path.outside_workspace',
      message: `${quote(given)} is not in the workspace, so its deletion could not be undone`,
    }
  const entries: Entry[] = []
  const refusal = collect({ locator, entries }, folder, { real, type })
  if (refusal !== undefined) return refusal
  if (entries.length > 1 && !recursive)
    return {
      ok: false,
      message: `${quote(given)} is a folder that is not empty (${entries.length - 1} below it); pass "recursive": true to delete them too`,
    }
  return entries
}

type Collecting = { readonly locator: Locator; readonly entries: Entry[] }

function collect(collecting: Collecting, folder: Handle, entry: Entry): Refusal | undefined {
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
  try {
    const stat = lstatSync(slot(folder, name))
    if (stat.isDirectory()) return 'directory'
    if (stat.isFile()) return 'file'
    return stat.isSymbolicLink() ? 'link' : 'other'
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}
