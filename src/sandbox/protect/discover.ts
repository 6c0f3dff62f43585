/** Finds the git repositories and protected names (security/targets/protected.ts) that the sandbox must guard in a workspace. */

import { type Dirent, existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { protectedRows, spelt } from '../../security/targets/protected.ts'

const DEPTH = 3
const FOLDERS = 2_000

/** All paths are relative to `workspace`. */
export type Discovered = {
  /** Folders with a `.git`; always includes '' (the workspace itself). */
  readonly repositories: readonly string[]
  /** Existing protected names, nearest to the root first, without `.git`. */
  readonly names: readonly string[]
  /** False when the search reached its limit. */
  readonly complete: boolean
}

export function discover(workspace: string): Discovered {
  const repositories = new Set([''])
  const names: string[] = []
  let level = ['']
  let seen = 0
  for (let depth = 0; depth <= DEPTH && level.length > 0; depth++) {
    const next: string[] = []
    for (const folder of level) {
      if (++seen > FOLDERS) return { repositories: [...repositories], names, complete: false }
      const entries = list(join(workspace, folder))
      names.push(...namesAmong(entries, workspace, folder))
      for (const entry of entries) {
        if (entry.name === '.git') repositories.add(folder)
        else if (entry.isDirectory() && entry.name !== 'node_modules' && !entry.name.startsWith('.')) next.push(join(folder, entry.name))
      }
    }
    level = next
  }
  return { repositories: [...repositories], names, complete: true }
}

/** Searches the workspace folder only, not the folders below it; excludes `.git`. */
export function rootNames(workspace: string): string[] {
  return namesAmong(list(workspace), workspace, '')
}

function namesAmong(entries: readonly Dirent[], workspace: string, folder: string): string[] {
  return entries
    .filter(({ name }) => name !== '.git')
    .flatMap((entry) => {
      const rests = protectedRows(entry.name).map(([, ...rest]) => rest)
      const path = join(folder, entry.name)
      return rests.some((rest) => rest.length === 0) ? [path] : rests.flatMap((rest) => following({ workspace, path, entry, rest }))
    })
}

type Following = { readonly workspace: string; readonly path: string; readonly entry: Dirent; readonly rest: readonly string[] }

/**
 * Finds the rest of a protected row below `path`, in any spelling. A symbolic link in the middle stands for everything that it leads to.
 */
function following({ workspace, path, entry, rest: [name, ...rest] }: Following): string[] {
  if (name === undefined) return [path]
  const at = join(workspace, path)
  if (entry.isSymbolicLink()) return existsSync(join(at, name, ...rest)) ? [path] : []
  return list(at)
    .filter((entry) => spelt(entry.name) === name)
    .flatMap((entry) => following({ workspace, path: join(path, entry.name), entry, rest }))
}

function list(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    return []
  }
}
