/** Resolves a path parameter inside its folder: no "..", no symbolic link on the way, and what it names exists. */

import { lstatSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import type { ResolvePath } from './check-value.ts'

/** The program opens the path again later; keep the folder of such a parameter writable only by users you trust. */
export const resolvePath: ResolvePath = ({ under, kind }, value) => {
  const root = realFolder(under)
  if (root === undefined) return { ok: false, message: `is to be under ${under}, which is no folder here` }
  const inside = value === under || value.startsWith(under.endsWith('/') ? under : `${under}/`) ? value.slice(under.length) : value
  if (value.startsWith('/') && inside === value) return { ok: false, message: `must be under ${under}` }
  const parts = inside.split('/').filter((part) => part !== '')
  if (parts.some((part) => part === '..' || part === '.')) return { ok: false, message: 'must not contain "." or ".."' }
  return walk(root, parts, kind)
}

function walk(root: string, parts: readonly string[], kind: 'any' | 'file' | 'folder'): ReturnType<ResolvePath> {
  let path = root
  for (const part of parts) {
    path = join(path, part)
    const found = lookAt(path)
    if (!found) return { ok: false, message: `must exist; there is no "${path}"` }
    if (found.isSymbolicLink()) return { ok: false, message: `must not lead through a symbolic link; "${path}" is one` }
  }
  const last = lookAt(path)
  if (kind === 'file' && !last?.isFile()) return { ok: false, message: `must be a regular file; "${path}" is none` }
  if (kind === 'folder' && !last?.isDirectory()) return { ok: false, message: `must be a folder; "${path}" is none` }
  return { ok: true, texts: [path] }
}

function lookAt(path: string) {
  try {
    return lstatSync(path, { throwIfNoEntry: false })
  } catch {
    // A part of the path is a file, or we may not look into a folder.
    return undefined
  }
}

function realFolder(path: string): string | undefined {
  try {
    const real = realpathSync(path)
    return lstatSync(real).isDirectory() ? real : undefined
  } catch {
    return undefined
  }
}
