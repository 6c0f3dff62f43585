/** Opens the folders of one tree part by part without following links, and keeps the last ones open. */

import { chmodSync, fstatSync, lstatSync, mkdirSync, promises, readdirSync, readlinkSync, readSync } from 'node:fs'
import { errnoOf, hasCode, unlessCode, unlessMissing } from '../../../kit/errors.ts'
import type { OutsideGit } from '../../../runtime/changes.ts'
import { flags, type Handle, hold, slot } from '../../descriptor.ts'
import { type EntryStat, folderOf, lastOf, lstat, type RawName, rawSlot } from './entry.ts'
import type { EntryPlace } from './libc.ts'

/**
 * Handles that one tree keeps open; it closes those that were used longest ago, and only between two steps, because a step uses several.
 */
const MOST_OPEN = 100
/** Handles of one way down that stay open: a path has up to 2,048 folders, more than a process may hold open. */
const MOST_ON_WAY = 50

export type Tree = Disposable & {
  /** Not a number where the tree lies on two file systems. */
  readonly device: number
  /** The owner of the top folder. */
  readonly owner: { readonly uid: number; readonly gid: number }
  /** @returns the group that a folder gives to what is made in it, if its mode says so @throws the system's error */
  groupOf(raw: RawName): number | undefined
  /** @throws ENOENT, ENOTDIR, ELOOP or another error of the system; ESTALE when the folder is no longer where its name says */
  folder(raw: RawName): Handle
  /** Opens the folder and makes what is missing. @throws the system's error */
  madeFolder(raw: RawName): Handle
  /** @returns undefined when nothing is there, or when a folder above is missing or no folder @throws the system's error */
  lstat(raw: RawName): EntryStat | undefined
  /** Begins another step: places are checked again, and handles are closed when too many are open. */
  betweenSteps(): void
  /** Closes the handle of a folder that no longer exists. */
  forget(raw: RawName): void
}

type TreeOptions = {
  readonly root: string
  /** Called for a folder that this user owns but may not search or write, before its mode is widened. */
  readonly onWiden?: (raw: RawName, mode: number) => void
  /** Leaves all modes alone. */
  readonly asItIs?: boolean
  /** No other process can reach the tree, so its folders do not move. */
  readonly isPrivate?: boolean
  /** A faster lstat. */
  readonly quickLstat?: typeof lstat
  /** Names that begin with `at`, an absolute path, stand in the folder `root`: see OutsideGit. */
  readonly outside?: { readonly at: string; readonly root: string } | undefined
}

type OpenFolder = Handle & { readonly group?: number }

/** @throws the system's error when a root is not a folder */
export function openTree({ outside, ...options }: TreeOptions): Tree {
  using opened = new DisposableStack()
  const own = opened.use(openOne(options))
  const at = outside && Buffer.from(outside.at).toString('latin1')
  const nameOf = (raw: RawName): RawName => (raw === '' ? (at ?? '') : `${at}/${raw}`)
  const { onWiden } = options
  const more = { root: outside?.root ?? '', onWiden: onWiden && ((raw: RawName, mode: number) => onWiden(nameOf(raw), mode)) }
  const other = outside && opened.use(openOne({ ...options, ...more }))
  const by =
    <T>(use: (tree: Tree, raw: RawName) => T) =>
    (raw: RawName): T => {
      if (!raw.startsWith('/')) return use(own, raw)
      if (at !== undefined && other && (raw === at || raw.startsWith(`${at}/`))) return use(other, raw.slice(at.length + 1))
      throw Object.assign(new Error('it lies outside the workspace'), { code: 'ENOENT' })
    }
  const find = by((tree, raw) => tree.lstat(raw))
  const handles = opened.move()
  return {
    device: other === undefined || other.device === own.device ? own.device : Number.NaN,
    owner: own.owner,
    groupOf: by((tree, raw) => tree.groupOf(raw)),
    folder: by((tree, raw) => tree.folder(raw)),
    madeFolder: by((tree, raw) => tree.madeFolder(raw)),
    lstat: (raw) => unlessMissing(() => find(raw)),
    betweenSteps() {
      own.betweenSteps()
      other?.betweenSteps()
    },
    forget: by((tree, raw) => tree.forget(raw)),
    [Symbol.dispose]: () => handles[Symbol.dispose](),
  }
}

/** Tells the place of what a set keeps of the git directory outside, beside what it keeps of the workspace in `root`. */
export function gitBeside(root: string, outside: OutsideGit | undefined): TreeOptions['outside'] {
  return outside && { at: outside.common, root: `${root}.git` }
}

/** Tells the place of the git directory outside itself. */
export function gitInPlace(outside: OutsideGit | undefined): TreeOptions['outside'] {
  return outside && { at: outside.common, root: outside.common }
}

function openOne({ root, onWiden, asItIs = false, isPrivate = false, quickLstat = lstat }: Omit<TreeOptions, 'outside'>): Tree {
  const bottom = hold(root, flags.folder)
  const place = realOf(bottom)
  const open = new Map<RawName, OpenFolder>()
  const state: { checked?: RawName } = {}
  const mine = process.geteuid?.()

  function usable(raw: RawName, handle: Handle): OpenFolder {
    const { uid, gid, mode } = fstatSync(handle.fd)
    const folder = { ...handle, ...((mode & 0o2000) !== 0 && { group: gid }) }
    if (asItIs || uid !== mine || (mode & 0o700) === 0o700) return folder
    onWiden?.(raw, mode & 0o7777)
    chmodSync(slot(handle), (mode & 0o7777) | 0o700)
    return folder
  }

  function folder(raw: RawName): OpenFolder {
    const known = raw === '' ? top : open.get(raw)
    if (known !== undefined) return checked(raw, recent(raw, known))
    const way = [raw]
    for (let at = folderOf(raw); at !== '' && !open.has(at); at = folderOf(at)) way.push(at)
    way.reverse()
    let above = folder(folderOf(way[0] ?? ''))
    for (const [at, each] of way.entries()) {
      above = recent(each, usable(each, hold(rawSlot(above, lastOf(each)), flags.childFolder)))
      if (at >= MOST_ON_WAY) forget(way[at - MOST_ON_WAY] ?? '')
    }
    return above
  }

  /** The map has the handles in the order of their last use. */
  function recent(raw: RawName, handle: OpenFolder): OpenFolder {
    if (raw === '') return handle
    open.delete(raw)
    open.set(raw, handle)
    return handle
  }

  function forget(raw: RawName): void {
    open.get(raw)?.[Symbol.dispose]()
    open.delete(raw)
  }

  /** Checks once in each step where the folder is, because the handle stays valid when somebody moves the folder away. */
  function checked(raw: RawName, handle: OpenFolder): OpenFolder {
    if (isPrivate || state.checked === raw) return handle
    state.checked = raw
    if (realOf(handle) === (raw === '' ? place : `${place === '/' ? '' : place}/${raw}`)) return handle
    throw Object.assign(new Error('the folder was moved or removed meanwhile'), { code: 'ESTALE' })
  }

  function madeFolder(raw: RawName): Handle {
    try {
      return folder(raw)
    } catch (error) {
      if (!hasCode(error, 'ENOENT') || raw === '') throw error
      mkdirSync(rawSlot(madeFolder(folderOf(raw)), lastOf(raw)), 0o700)
      return folder(raw)
    }
  }

  function close(): void {
    for (const handle of open.values()) handle[Symbol.dispose]()
    open.clear()
  }

  const top = usable('', bottom)
  const stat = fstatSync(top.fd)
  return {
    device: stat.dev,
    owner: { uid: stat.uid, gid: stat.gid },
    folder,
    madeFolder,
    groupOf: (raw) => folder(raw).group,
    lstat(raw) {
      return unlessCode(['ENOENT', 'ENOTDIR', 'ELOOP'], () => quickLstat(folder(folderOf(raw)), lastOf(raw)))
    },
    betweenSteps() {
      state.checked = undefined
      for (const raw of open.keys()) {
        if (open.size <= MOST_OPEN) break
        forget(raw)
      }
    },
    forget,
    [Symbol.dispose]() {
      close()
      top[Symbol.dispose]()
    },
  }
}

function realOf(handle: Handle): RawName {
  return readlinkSync(slot(handle), { encoding: 'buffer' }).toString('latin1')
}

const CHUNK = 1024 * 1024

/** Reads a file's content by descriptor. @returns SHA-256 in hex @throws the system's error */
export async function digestAt({ folder, name }: EntryPlace, pace: Pace): Promise<string> {
  using file = hold(rawSlot(folder, name), flags.readHere)
  const hasher = new Bun.CryptoHasher('sha256')
  const buffer = Buffer.alloc(CHUNK)
  for (let size = readSync(file.fd, buffer); size > 0; size = readSync(file.fd, buffer)) {
    hasher.update(buffer.subarray(0, size))
    await pace()
  }
  return hasher.digest('hex')
}

/** @returns the first `maxBytes` bytes, however large the file is @throws the system's error */
export function startAt({ folder, name }: EntryPlace, maxBytes: number): Buffer {
  using file = hold(rawSlot(folder, name), flags.readHere)
  const buffer = Buffer.alloc(Math.min(maxBytes, fstatSync(file.fd).size))
  let length = 0
  for (let size = 1; size > 0 && length < buffer.length; length += size)
    size = readSync(file.fd, buffer, length, buffer.length - length, null)
  return buffer.subarray(0, length)
}

/** @returns what a symbolic link contains @throws the system's error */
export function linkTextAt({ folder, name }: EntryPlace): string {
  return readlinkSync(rawSlot(folder, name), { encoding: 'buffer' }).toString()
}

/** Waits one turn of the event loop if this work has used its time; cheap to call for each file. */
export type Pace = () => Promise<void> | undefined

const SLICE_NS = 8_000_000

export function createPace(): Pace {
  let started = Bun.nanoseconds()
  return () => {
    if (Bun.nanoseconds() - started < SLICE_NS) return undefined
    return new Promise((resolve) =>
      setImmediate(() => {
        started = Bun.nanoseconds()
        resolve()
      }),
    )
  }
}

/**
 * Removes a folder with everything in it, also below folders whose modes forbid it, without blocking the process. Does nothing when it does
 * not exist. @throws the system's error
 */
export async function removeTree(path: string): Promise<void> {
  try {
    await promises.rm(path, { recursive: true, force: true })
  } catch (error) {
    if (!['EACCES', 'EPERM'].includes(errnoOf(error) ?? '')) throw error
    openUp(Buffer.from(path))
    await promises.rm(path, { recursive: true, force: true })
  }
}

function openUp(folder: Buffer): void {
  if (!lstatSync(folder).isDirectory()) return
  chmodSync(folder, 0o700)
  // With file types, the runtime gives names instead of entries for a path of bytes.
  for (const name of readdirSync(folder, { encoding: 'buffer' })) openUp(Buffer.concat([folder, Buffer.from('/'), name]))
}
