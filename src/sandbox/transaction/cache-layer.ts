/**
 * Keeps the cache folders that sandboxed commands write, in layers over the workspace that only sandboxed commands see: one for each
 * conversation, level and set of hosts. A layer is itself the upper part of earlier overlays, so it can hold marks for removed names.
 */

import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { atEnd, attempt, succeeds } from '../../kit/errors.ts'
import { sha256 } from '../../kit/sha256.ts'
import { isCacheName } from '../../security/changes/cache-names.ts'
import type { CacheOwner } from '../contract.ts'
import { type Libc, openLibc } from '../libc.ts'
import { bytePath, bytesOf, createAttributes, createPause, lookAt, namesIn, removeTree, widen } from './layer-files.ts'
import { isWhiteout, join } from './walk-upper.ts'

export type CacheLayer = {
  readonly folder: string
  /** Removes entries that no longer have a place in the workspace; call it before a command sees its view. */
  prune(): void
  /** Moves cache folders out of the upper layer of a command that has ended; they wait in its folder until somebody decides. */
  setAside(folder: string, caches: readonly string[]): void
}

export type CacheLimits = { readonly files: number; readonly bytes: number }

type CacheOptions = { readonly folder: string; readonly workspace: string; readonly libc: Libc }

const usualLimits: CacheLimits = { files: 300_000, bytes: 8 * 2 ** 30 }
/** A search of more entries, some milliseconds, is not repeated at once. */
const MANY = 500
const REST_MS = 5_000
/** Files that a new conversation takes over from caches that were applied. */
const MOST_TAKEN = 20_000
const mostLayers = 8
const KEPT_MS = 7 * 86_400_000
/** Bytes; python compiles no larger file from a source that a person writes. */
const MOST_COMPILED = 32 * 2 ** 20

/** The caches that wait beside the changes of a command, and their target. Paths have one character per byte. */
type WaitingCaches = { readonly workspace: string; readonly layer: string; readonly applied: string; readonly caches: readonly string[] }
const [waitingFile, waitingFolder] = ['caches.json', 'caches']

/** @param folder holds the layers of this workspace @returns the layer of an owner, made when it is missing */
export function createCaches({ folder, ...making }: CacheOptions): (owner?: CacheOwner) => CacheLayer {
  const opened = new Map<string, CacheLayer>()
  return ({ conversation, terms } = { conversation: '', terms: '' }) => {
    const layer = `${folder}/${sha256(JSON.stringify([conversation, terms])).slice(0, 24)}`
    const applied = `${folder}/applied-${sha256(terms).slice(0, 16)}`
    const found = opened.get(layer) ?? createCacheLayer({ ...making, folder: layer, applied })
    if (!opened.has(layer)) forgetOld(folder, [layer, applied])
    if (!existsSync(layer)) takeOver({ ...making, folder: layer, applied })
    opened.set(layer, found)
    return found
  }
}

/** The time of a layer says when a process used it last. */
function forgetOld(folder: string, used: readonly string[]): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  for (const path of used) if (existsSync(path)) utimesSync(path, new Date(), new Date())
  const usedAt = (name: string) => statSync(`${folder}/${name}`, { throwIfNoEntry: false })?.mtimeMs ?? 0
  const names = readdirSync(folder).toSorted((a, b) => usedAt(b) - usedAt(a))
  for (const [at, name] of names.entries()) if (at >= mostLayers || usedAt(name) < Date.now() - KEPT_MS) removeTree(`${folder}/${name}`)
}

type Layer = CacheOptions & { readonly applied: string }

/** Makes the layer from the caches that were applied, unless another process makes it first. */
function takeOver({ folder, applied, workspace, libc }: Layer): void {
  const made = `${folder}.new-${crypto.randomUUID().slice(0, 8)}`
  mkdirSync(made, { recursive: true, mode: 0o700 })
  const bring = transfer({ libc, workspace, from: applied, to: made, keeps: true, most: MOST_TAKEN })
  // Commands make missing caches again.
  attempt(() => existsSync(applied) && bring(''))
  if (!succeeds(() => renameSync(made, folder))) removeTree(made)
}

type CacheTransfer = {
  readonly libc: Libc
  readonly workspace: string
  readonly from: string
  readonly to: string
  /** Links the files into both layers, because no file of a layer is changed in place. Marks of removed and replaced names stay where they are. */
  readonly keeps: boolean
  readonly most: number
}

/** @returns a function that brings what lies at a path into another layer */
function transfer({ libc, workspace, from, to, keeps, most }: CacheTransfer): (path: string) => void {
  const [state, { isOpaque }] = [{ left: most }, createAttributes(libc)]
  return function bring(path) {
    const [source, target] = [join(bytePath(from), path), join(bytePath(to), path)]
    const [own, there] = [lookAt(source), lookAt(target)]
    const isMark = own !== undefined && (isWhiteout(own) || (own.isDirectory() && isOpaque(source)))
    if (own === undefined || (keeps && (isMark || --state.left < 0))) return
    const merges = own.isDirectory() && !isMark && (keeps || there?.isDirectory() === true)
    if (there !== undefined && !(merges && there.isDirectory())) remove(to, target)
    if (merges) {
      mkdirSync(bytesOf(target), { recursive: true, mode: own.mode & 0o777 })
      for (const name of namesIn(libc, source)) bring(join(path, name))
    } else if (keeps) linkSync(bytesOf(source), bytesOf(target))
    // The mark of a removed name is only right above a name of the workspace: elsewhere commands would see it.
    else if (!isWhiteout(own) || lookAt(join(bytePath(workspace), path)) !== undefined) renameSync(bytesOf(source), bytesOf(target))
  }
}

/** Moves the entry away first, so that it disappears at once. */
function remove(layer: string, path: string): void {
  const discarded = `${layer}.gone-${crypto.randomUUID()}`
  renameSync(bytesOf(path), discarded)
  removeTree(discarded)
}

function createCacheLayer({ folder, applied, workspace, libc }: Layer): CacheLayer {
  const [layer, real] = [bytePath(folder), bytePath(workspace)]
  const state = { pruneAfter: 0, seen: 0 }
  const isCache = (path: string, name: string) =>
    isCacheName(name, path.slice(path.lastIndexOf('/') + 1), (sibling) => lookAt(join(real, path, sibling)) !== undefined)

  function pruneIn(path: string): void {
    for (const name of namesIn(libc, join(layer, path))) {
      state.seen++
      const at = join(path, name)
      const [own, below] = [lookAt(join(layer, at)), lookAt(join(real, at))]
      if (own === undefined) continue
      if (isStale({ path, name, own, below })) remove(folder, join(layer, at))
      else if (own.isDirectory() && below !== undefined && !isCache(path, name)) {
        if ((own.mode & 0o777) !== (below.mode & 0o777)) chmodSync(bytesOf(join(layer, at)), below.mode & 0o777)
        pruneIn(at)
      }
    }
  }

  type LayerEntry = { readonly path: string; readonly name: string; readonly own: Stats; readonly below: Stats | undefined }

  /** Tells whether the entry must be removed: only caches may stand where the workspace has no entry, and no entry may hide a file. */
  function isStale({ path, name, own, below }: LayerEntry): boolean {
    if (!isCache(path, name)) return !own.isDirectory() || !below?.isDirectory()
    return own.isDirectory() ? below !== undefined && !below.isDirectory() : !below?.isDirectory()
  }

  return {
    folder,
    prune() {
      if (performance.now() < state.pruneAfter) return
      state.seen = 0
      pruneIn('')
      if (state.seen > MANY) state.pruneAfter = performance.now() + REST_MS
    },
    setAside(from, caches) {
      if (caches.length === 0) return
      for (const path of caches) {
        const [at, to] = [join(bytePath(from), 'up', path), join(bytePath(from), waitingFolder, path)]
        const own = lookAt(at)
        if (own?.isDirectory()) widen(at, own, 0o700)
        mkdirSync(bytesOf(to.slice(0, to.lastIndexOf('/'))), { recursive: true, mode: 0o700 })
        renameSync(bytesOf(at), bytesOf(to))
      }
      writeFileSync(`${from}/${waitingFile}`, JSON.stringify({ workspace, layer: folder, applied, caches } satisfies WaitingCaches), {
        mode: 0o600,
      })
    },
  }
}

/**
 * Keeps the caches that wait in the folder of a command. `isApplied`: its changes are in the workspace, so later conversations may take
 * them over; otherwise it changed nothing else. Caches that cannot be kept are made again, so a failure needs no report.
 */
export async function keepCaches(folder: string, isApplied: boolean, limits = usualLimits): Promise<void> {
  if (!existsSync(`${folder}/${waitingFile}`)) return
  const { workspace, layer, applied, caches }: WaitingCaches = JSON.parse(readFileSync(`${folder}/${waitingFile}`, 'utf8'))
  const [libc, from] = [openLibc(), `${folder}/${waitingFolder}`]
  using _end = atEnd(() => forgetCaches(folder))
  for (const path of caches)
    await dropUnchecked({ libc, from: bytePath(from), layer: bytePath(layer), real: bytePath(workspace), cache: path }, path)
  for (const to of isApplied ? [applied, layer] : [layer]) {
    const bring = transfer({ libc, workspace, from, to, keeps: to === applied, most: limits.files })
    for (const path of caches) {
      makeParents(to, workspace, path)
      bring(path)
    }
    void emptyBeyond(libc, to, limits).catch(() => {})
  }
}

/** Drops the waiting caches, because only a part of the changes was accepted and caches may come from the rest. */
export function forgetCaches(folder: string): void {
  rmSync(`${folder}/${waitingFile}`, { force: true })
  removeTree(`${folder}/${waitingFolder}`)
}

/** Makes the folders above a path of a layer as they are in the workspace. */
function makeParents(layer: string, workspace: string, path: string): void {
  mkdirSync(layer, { recursive: true, mode: 0o700 })
  for (let end = path.indexOf('/'); end > 0; end = path.indexOf('/', end + 1)) {
    const [parent, real] = [layer, workspace].map((root) => join(bytePath(root), path.slice(0, end)))
    if (parent === undefined || real === undefined || lookAt(parent) !== undefined) continue
    mkdirSync(bytesOf(parent), { mode: 0o700 })
    chmodSync(bytesOf(parent), ((lookAt(real)?.mode ?? 0o755) & 0o777) | 0o700)
  }
}

type Checking = { readonly libc: Libc; readonly from: string; readonly layer: string; readonly real: string; readonly cache: string }

/** Removes compiled files that python would run without a look at their source. */
async function dropUnchecked(checking: Checking, path: string): Promise<void> {
  const [pause, at] = [createPause(), join(checking.from, path)]
  const own = lookAt(at)
  if (own?.isDirectory()) {
    widen(at, own, 0o700)
    for (const name of namesIn(checking.libc, at)) await dropUnchecked(checking, join(path, name))
    await pause()
  } else if (own !== undefined && path.endsWith('.pyc') && !isChecked(checking, path)) unlinkSync(bytesOf(at))
}

/** Tells whether python compares a compiled file (PEP 552) with its source: by a hash, or by the time and size that the source has now. */
function isChecked({ from, layer, real, cache }: Checking, path: string): boolean {
  const [, folder, name] = /^(.*?)__pycache__\/([^/]+?)\.(?:cpython|pypy|graalpy)-?\d[^/]*\.pyc$/s.exec(path) ?? []
  const own = lookAt(join(from, path))
  if (folder === undefined || own?.isFile() !== true || own.size < 16 || own.size > MOST_COMPILED) return false
  const header = readFileSync(bytesOf(join(from, path)))
  const [flags, time, size] = [header.readUInt32LE(4), header.readUInt32LE(8), header.readUInt32LE(12)]
  const source = `${folder}${name}.py`
  const places = source.startsWith(`${cache}/`) ? [from, layer, real] : [real]
  const now = places.map((place) => lookAt(join(place, source))).find((stat) => stat !== undefined)
  const isSame = now?.isFile() === true && time === Math.floor(now.mtimeMs / 1000) % 2 ** 32 && size === now.size % 2 ** 32
  return flags === 3 || (flags === 0 && isSame)
}

async function emptyBeyond(libc: Libc, folder: string, limits: CacheLimits): Promise<void> {
  const [pause, total] = [createPause(), { files: 0, bytes: 0 }]
  const isBeyond = () => total.files > limits.files || total.bytes > limits.bytes
  const add = async (path: string): Promise<void> => {
    for (const name of namesIn(libc, path)) {
      const stat = lookAt(join(path, name))
      total.files += 1
      total.bytes += stat?.isFile() ? stat.size : 0
      if (isBeyond()) return
      if (stat?.isDirectory()) await add(join(path, name))
      await pause()
    }
  }
  await add(bytePath(folder))
  if (isBeyond()) for (const name of namesIn(libc, bytePath(folder))) remove(folder, join(bytePath(folder), name))
}
