/** Finds the git repositories that lie in a workspace, so that their hooks and settings can be protected too. */

import { type Dirent, readdirSync } from 'node:fs'
import { join } from 'node:path'

const DEPTH = 3
const FOLDERS = 2_000

/** Folders relative to `workspace`; '' (the workspace itself) always. `complete` is false when it gave up looking. */
export function findRepositories(workspace: string): { readonly repositories: readonly string[]; readonly complete: boolean } {
  const repositories = new Set([''])
  let level = ['']
  let seen = 0
  for (let depth = 0; depth <= DEPTH && level.length > 0; depth++) {
    const next: string[] = []
    for (const folder of level) {
      if (++seen > FOLDERS) return { repositories: [...repositories], complete: false }
      for (const entry of list(join(workspace, folder))) {
        if (entry.name === '.git') repositories.add(folder)
        else if (entry.isDirectory() && entry.name !== 'node_modules' && !entry.name.startsWith('.')) next.push(join(folder, entry.name))
      }
    }
    level = next
  }
  return { repositories: [...repositories], complete: true }
}

function list(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    return []
  }
}
