/** Opens the workspace, the only access to the user's files: each access opens the file first and then judges the opened file. */

import type { Check, Workspace } from './contract.ts'
import { editText, previewEdit } from './edit.ts'
import { list } from './list.ts'
import { createLocator } from './locate-path.ts'
import { readBytes, readText, scan, stat } from './read-file.ts'
import { walk } from './walk/walk.ts'
import { writeText } from './write-file.ts'

/** `home` is what "~/" stands for. Linux only (O_PATH, /proc/self/fd). @throws when `root` is not a folder that can be opened */
export function openWorkspace(options: { readonly root: string; readonly check: Check; readonly home?: string }): Workspace {
  const locator = createLocator(options)
  return {
    root: locator.root,
    readText: (path, range) => readText(locator, path, range),
    readBytes: (path, limits) => readBytes(locator, path, limits),
    list: (path, limits) => list(locator, path, limits),
    writeText: (path, text) => writeText(locator, path, text),
    editText: (path, change) => editText(locator, path, change),
    previewEdit: (path, change) => previewEdit(locator, path, change),
    stat: (path) => stat(locator, path),
    walk: (path, { onSkip } = {}) => walk(locator, path, onSkip),
    scan: (path, options) => scan(locator, path, options),
  }
}
