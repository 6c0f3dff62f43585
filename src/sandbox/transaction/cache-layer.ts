/**
 * Keeps the cache folders that sandboxed commands write, in a layer over the workspace that only sandboxed commands see. The layer is
 * itself the upper part of earlier overlays, so it can hold marks for removed names.
 */

import { chmodSync, mkdirSync, renameSync, type Stats } from 'node:fs'
import { isCacheName } from '../../security/changes/cache-names.ts'
import type { Libc } from '../libc.ts'
import { bytePath, bytesOf, createAttributes, lookAt, namesIn } from './layer-files.ts'
import { createPause } from './pause.ts'
import { removeTree, widen } from './remove-tree.ts'
import { isWhiteout, join } from './walk-upper.ts'

export type CacheLayer = {
  /** Removes what the workspace has no place for any more; call it before a command looks at its view. */
  prune(): void
  /** Moves cache folders out of the upper layer of a command that has ended. Paths have one character per byte. */
  keep(up: string, caches: readonly string[]): void
}

export type CacheLimits = { readonly files: number; readonly bytes: number }

type Making = { readonly folder: string; readonly workspace: string; readonly libc: Libc; readonly limits?: CacheLimits }

const usualLimits: CacheLimits = { files: 300_000, bytes: 8 * 2 ** 30 }
/** A search that takes longer, in milliseconds, is not repeated at once. */
const SLOW_MS = 4
const REST_MS = 5_000

/** @throws Error when the folder cannot be made */
export function createCacheLayer({ folder, workspace, libc, limits = usualLimits }: Making): CacheLayer {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const [layer, real] = [bytePath(folder), bytePath(workspace)]
  const attributes = createAttributes(libc)
  const state = { measuring: false, pruneAfter: 0 }

  function pruneIn(path: string): void {
    for (const name of namesIn(libc, join(layer, path))) {
      const at = join(path, name)
      const [own, below] = [lookAt(join(layer, at)), lookAt(join(real, at))]
      if (own === undefined) continue
      if (isStale({ path, name, own, below })) remove(join(layer, at))
      else if (own.isDirectory() && below !== undefined && !isCache(path, name)) {
        if ((own.mode & 0o777) !== (below.mode & 0o777)) chmodSync(bytesOf(join(layer, at)), below.mode & 0o777)
        pruneIn(at)
      }
    }
  }

  /** Moves it away first, so that it is gone at once. */
  function remove(path: string): void {
    const gone = `${folder}.gone-${crypto.randomUUID()}`
    renameSync(bytesOf(path), gone)
    removeTree(gone)
  }

  type Found = { readonly path: string; readonly name: string; readonly own: Stats; readonly below: Stats | undefined }

  /** Only caches may stand where the workspace has nothing, and nothing may hide a file. */
  function isStale({ path, name, own, below }: Found): boolean {
    if (!isCache(path, name)) return !own.isDirectory() || !below?.isDirectory()
    return own.isDirectory() ? below !== undefined && !below.isDirectory() : !below?.isDirectory()
  }

  function isCache(path: string, name: string): boolean {
    return isCacheName(name, path.slice(path.lastIndexOf('/') + 1), (sibling) => lookAt(join(real, path, sibling)) !== undefined)
  }

  function merge(up: string, path: string): void {
    const [from, to] = [join(up, path), join(layer, path)]
    const [own, kept] = [lookAt(from), lookAt(to)]
    if (own === undefined) return
    if (own.isDirectory()) widen(from, own, 0o700)
    if (own.isDirectory() && kept?.isDirectory() && !attributes.isOpaque(from)) {
      for (const name of namesIn(libc, from)) merge(up, join(path, name))
      return
    }
    if (kept !== undefined) remove(to)
    // The mark of a removed name is only right above a name of the workspace: elsewhere commands would see it.
    if (!isWhiteout(own) || lookAt(join(real, path)) !== undefined) renameSync(bytesOf(from), bytesOf(to))
  }

  function makeParents(up: string, path: string): void {
    for (let end = path.indexOf('/'); end > 0; end = path.indexOf('/', end + 1)) {
      const parent = path.slice(0, end)
      if (lookAt(join(layer, parent)) !== undefined) continue
      mkdirSync(bytesOf(join(layer, parent)), { mode: 0o700 })
      chmodSync(bytesOf(join(layer, parent)), ((lookAt(join(up, parent))?.mode ?? 0o755) & 0o777) | 0o700)
    }
  }

  async function measure(): Promise<void> {
    if (state.measuring) return
    state.measuring = true
    try {
      const [pause, total] = [createPause(), { files: 0, bytes: 0 }]
      const add = async (path: string): Promise<void> => {
        for (const name of namesIn(libc, path)) {
          const stat = lookAt(join(path, name))
          total.files += 1
          total.bytes += stat?.isFile() ? stat.size : 0
          if (total.files > limits.files || total.bytes > limits.bytes) return
          if (stat?.isDirectory()) await add(join(path, name))
          await pause()
        }
      }
      await add(layer)
      if (total.files > limits.files || total.bytes > limits.bytes) empty()
    } finally {
      state.measuring = false
    }
  }

  function empty(): void {
    for (const name of namesIn(libc, layer)) remove(join(layer, name))
  }

  return {
    prune() {
      const began = performance.now()
      if (began < state.pruneAfter) return
      pruneIn('')
      const ended = performance.now()
      if (ended - began > SLOW_MS) state.pruneAfter = ended + REST_MS
    },
    keep(up, caches) {
      for (const path of caches) {
        makeParents(up, path)
        merge(up, path)
      }
      // A cache that is gone is made again, so a failure needs no report.
      if (caches.length > 0) void measure().catch(() => {})
    },
  }
}
