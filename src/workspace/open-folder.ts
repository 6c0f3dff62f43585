/** One folder's entries, read through its descriptor. */

import { type Dirent, lstatSync, readdirSync } from 'node:fs'
import type { EntryType } from './contract.ts'
import { type Handle, slot } from './descriptor.ts'

export type Child = { readonly name: string; readonly type: EntryType }

/** In order of name (UTF-16 code units). @throws the system's error */
export function children(folder: Handle): Child[] {
  return readdirSync(slot(folder), { withFileTypes: true })
    .map((entry) => ({ name: entry.name, type: typeOf(folder, entry) }))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
}

function typeOf(folder: Handle, entry: Dirent): EntryType {
  if (entry.isFile()) return 'file'
  if (entry.isDirectory()) return 'directory'
  if (entry.isSymbolicLink()) return 'link'
  return entry.isFIFO() || entry.isSocket() || entry.isCharacterDevice() || entry.isBlockDevice() ? 'other' : looked(folder, entry.name)
}

/** Some file systems do not say the type in the listing. */
function looked(folder: Handle, name: string): EntryType {
  const stat = lstatSync(slot(folder, name), { throwIfNoEntry: false })
  if (stat?.isFile()) return 'file'
  if (stat?.isDirectory()) return 'directory'
  return stat?.isSymbolicLink() ? 'link' : 'other'
}

/** Bytes of a file; undefined when it is gone or hidden from us. */
export function sizeOf(folder: Handle, name: string): number | undefined {
  try {
    return lstatSync(slot(folder, name), { throwIfNoEntry: false })?.size
  } catch {
    return undefined
  }
}
