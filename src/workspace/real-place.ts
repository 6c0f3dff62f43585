/** Where a path leads when every symbolic link on the way is followed, also a path of which not everything exists. */

import { readlinkSync, realpathSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'

const MAX_LINKS = 40

/** `path` is absolute; `..` in it goes up from where a link before it leads, as the kernel has it. Never throws: what goes round in circles leads nowhere, and stays as it is. */
export function realPlace(path: string, links = MAX_LINKS): string {
  try {
    return realpathSync.native(path)
  } catch {
    const folder = parentOf(path)
    return folder === path ? path : missing(path, folder, links)
  }
}

/** Not `dirname`: it would take the `..` of a path for a name. */
function parentOf(path: string): string {
  return dirname(path.replace(/\/+$/, '') || '/')
}

function missing(path: string, folder: string, links: number): string {
  const above = realPlace(folder, links)
  const place = resolve(above, basename(path))
  const target = links > 0 ? targetOf(place) : undefined
  return target === undefined ? place : realPlace(resolve(above, target), links - 1)
}

/** A link whose end is missing. */
function targetOf(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}
