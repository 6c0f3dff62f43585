/** Finds the files in a workspace that commands may not read, by the patterns of the operator. */

import { type Dirent, existsSync, readdirSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { forbiddenReads, type ReadQuestion } from '../../security/targets/path.ts'
import { isWithin } from './places.ts'

/** Looking through so many folders takes some 30 ms. */
const FOLDERS = 4_000
/** Each file costs a mount: a hundred take 10 ms. */
const MOST = 100
/** Packages and build results: their files come from others, or can be made again. */
const skipped = new Set(['node_modules', 'site-packages', '.git', 'target', '__pycache__'])

/** `folders`: how many it looked through. */
export type Unread = { readonly files: readonly string[]; readonly complete: boolean; readonly folders: number }

/** Nearest to the root first. A link stands for the file that it leads to, if that lies in the workspace. */
export function findUnread(question: ReadQuestion): Unread {
  const { workspace, patterns } = question
  if (patterns.length === 0) return { files: [], complete: true, folders: 0 }
  const isUnread = forbiddenReads(question)
  const files: string[] = []
  const queue = [workspace]
  for (let at = 0; at < queue.length; at++) {
    const folder = queue[at] ?? workspace
    if (at >= FOLDERS) return { files: files.slice(0, MOST), complete: false, folders: at }
    for (const entry of list(folder)) {
      const path = join(folder, entry.name)
      if (entry.isDirectory() && !skipped.has(entry.name)) queue.push(path)
      else if (entry.isFile() && isUnread(path)) files.push(path)
      else if (entry.isSymbolicLink() && isUnread(path)) files.push(...target(path, workspace))
    }
  }
  return { files: [...new Set(files)].slice(0, MOST), complete: files.length <= MOST, folders: queue.length }
}

function target(link: string, workspace: string): string[] {
  const real = existsSync(link) ? realpathSync(link) : workspace
  return real !== workspace && isWithin(real, workspace) ? [real] : []
}

function list(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    return []
  }
}
