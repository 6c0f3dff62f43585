/** Opens the workspace, the only access to the user's files: each access opens the file first and then judges the opened file. */

import type { Check, Originals, Workspace } from './contract.ts'
import { list } from './list.ts'
import { createLocator } from './locate-path.ts'
import { readBytes, readText, scan, stat } from './read-file.ts'
import { walk } from './walk/walk.ts'
import { deleteEntry } from './write/delete.ts'
import { editText, previewEdit } from './write/edit.ts'
import { writeText } from './write/write-file.ts'

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
    editText: (path, change, by) => editText(locator, path, change, { originals, by }),
    delete: (path, { recursive, by }) => deleteEntry({ locator, given: path, recursive, originals, by }),
    previewEdit: (path, change) => previewEdit(locator, path, change),
    stat: (path) => stat(locator, path),
    walk: (path, { onSkip } = {}) => walk(locator, path, onSkip),
    scan: (path, options) => scan(locator, path, options),
  }
}
