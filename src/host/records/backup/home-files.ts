/** Lists the files of a home that belong into a backup. */

import { lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

export type HomeFiles = {
  readonly files: readonly { readonly path: string; readonly mode: number }[]
  /** Links, sockets, FIFOs and devices. */
  readonly leftOut: readonly string[]
}

/** What is made again by itself, or belongs to the running processes. */
const transient = new Set(['run', 'logs', 'caches', 'tmp', 'telegram'])
/** Files with API keys, tokens and passwords. */
const secret = /^(keys\.env|config\.env|config\/[^/]*\.env)$/

/** `except`: paths below the home that are copied in another way. */
export function homeFiles(
  home: string,
  { withKeys, except }: { readonly withKeys: boolean; readonly except: ReadonlySet<string> },
): HomeFiles {
  const files: { path: string; mode: number }[] = []
  const leftOut: string[] = []

  function walk(folder: string): void {
    for (const name of namesIn(join(home, folder)).sort()) {
      const path = folder === '' ? name : `${folder}/${name}`
      const found = lstatSync(join(home, path), { throwIfNoEntry: false })
      if (!found || except.has(path) || (folder === '' && transient.has(name))) continue
      if (!withKeys && secret.test(path)) continue
      if (found.isDirectory()) walk(path)
      else if (found.isFile()) files.push({ path, mode: found.mode & 0o777 })
      else leftOut.push(path)
    }
  }

  walk('')
  return { files, leftOut }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
