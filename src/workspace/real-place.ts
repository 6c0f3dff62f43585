/** Resolves every symbolic link of a path, even when parts of the path do not exist. */

import { readlinkSync, realpathSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { attempt } from '../kit/errors.ts'

const MAX_LINKS = 40

/**
 * `path` is absolute; after a link, `..` goes up from the link's target, as in the kernel. Never throws: links that form a circle stay
 * unresolved.
 */
export function realPlace(path: string, links = MAX_LINKS): string {
  try {
    return realpathSync.native(path)
  } catch {
    const folder = parentOf(path)
    return folder === path ? path : missing(path, folder, links)
  }
}

/** Removes only the last name; a `..` stays in the path until the links before it are followed. */
function parentOf(path: string): string {
  return dirname(path.replace(/\/+$/, '') || '/')
}

function missing(path: string, folder: string, links: number): string {
  const above = realPlace(folder, links)
  const place = resolve(above, basename(path))
  const target = links > 0 ? targetOf(place) : undefined
  return target === undefined ? place : realPlace(resolve(above, target), links - 1)
}

/** @returns the target of a link whose target does not exist */
function targetOf(path: string): string | undefined {
  return attempt(() => readlinkSync(path))
}
