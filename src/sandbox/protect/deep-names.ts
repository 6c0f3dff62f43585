/**
 * Finds protected names that a command made or changed below the workspace folder, at any depth, when it wrote to the workspace itself. The
 * mounts that hold such names end a few folders below the root.
 */

import { type Dirent, lstatSync, readdirSync, type Stats } from 'node:fs'
import { join } from 'node:path'
import { isProtectedName } from '../../security/targets/protected.ts'

/** More folders than that are not looked through, and the answer says so. */
const MOST_FOLDERS = 50_000
/** Folders that are looked through before other work of the process goes on. */
const SLICE = 200
/** Names in the answer. */
const MOST_NAMED = 20

/** What decides in a repository which programs git runs; a commit changes everything else in it. */
const gitParts = ['config', 'config.worktree', 'hooks', 'commondir']

/** `since` in milliseconds. @returns sentences for the result of the command */
export async function nameDeepChanges(workspace: string, since: number): Promise<string[]> {
  const found: string[] = []
  const folders = ['']
  let seen = 0
  for (let folder = folders.pop(); folder !== undefined && seen < MOST_FOLDERS; folder = folders.pop()) {
    if (++seen % SLICE === 0) await new Promise<void>((resolve) => setImmediate(resolve))
    for (const entry of entriesOf(join(workspace, folder))) {
      const path = join(folder, entry.name)
      if (folder !== '') found.push(...changedBy({ workspace, path, name: entry.name, since }))
      if (entry.isDirectory() && entry.name !== '.git') folders.push(path)
    }
  }
  const more = found.length > MOST_NAMED ? ` and ${found.length - MOST_NAMED} more` : ''
  const names = found.slice(0, MOST_NAMED).map((path) => JSON.stringify(path))
  return [
    ...(names.length > 0
      ? [`was made or changed under a name that other programs run or obey; look at it first: ${names.join(', ')}${more}`]
      : []),
    ...(folders.length > 0 ? [`only ${MOST_FOLDERS} folders were looked through for names that other programs run or obey`] : []),
  ]
}

type Named = { readonly workspace: string; readonly path: string; readonly name: string; readonly since: number }

function changedBy({ workspace, path, name, since }: Named): string[] {
  if (!isProtectedName(path)) return []
  const isNew = (at: string) => (look(join(workspace, at))?.ctimeMs ?? 0) >= since
  const stat = look(join(workspace, path))
  // What happens in a folder changes its time too, so only a new one counts itself.
  if (!stat?.isDirectory()) return isNew(path) ? [path] : []
  if (stat.birthtimeMs >= since) return [path]
  return name.toLowerCase() === '.git' ? gitParts.map((part) => join(path, part)).filter(isNew) : []
}

function look(path: string): Stats | undefined {
  return lstatSync(path, { throwIfNoEntry: false })
}

function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    return []
  }
}
