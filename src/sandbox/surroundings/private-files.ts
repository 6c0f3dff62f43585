/** Finds system files that this user may read but not everybody may, so that a sandbox can hide them from commands of the same user. */

import { accessSync, constants, type Dirent, lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

const DEPTH = 6
const ENTRIES = 20_000

/**
 * @returns the topmost folders and the single files below `root` that we may read and other users may not. It skips empty files, which hold
 * no secret.
 */
export function privateBelow(root: string, depth = DEPTH): { readonly files: readonly string[]; readonly folders: readonly string[] } {
  const files: string[] = []
  const folders: string[] = []
  const queue = [{ folder: root, depth }]
  let seen = 0
  for (let at = queue.pop(); at !== undefined; at = queue.pop()) {
    for (const entry of list(at.folder)) {
      const path = join(at.folder, entry.name)
      if (++seen > ENTRIES) return { files, folders: [...folders, ...queue.map(({ folder }) => folder), at.folder] }
      if (entry.isSymbolicLink()) continue
      const kind = judge(path, entry)
      if (kind === 'private') (entry.isDirectory() ? folders : files).push(path)
      else if (kind === 'open' && entry.isDirectory() && at.depth > 1) queue.push({ folder: path, depth: at.depth - 1 })
    }
  }
  return { files, folders }
}

function judge(path: string, entry: Dirent): 'private' | 'open' | 'closed' {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  if (stat === undefined) return 'closed'
  const needed = entry.isDirectory() ? 0o005 : 0o004
  if ((stat.mode & needed) === needed) return 'open'
  return (entry.isDirectory() || stat.size > 0) && readable(path) ? 'private' : 'closed'
}

function readable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK)
    return true
  } catch {
    return false
  }
}

function list(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    return []
  }
}
