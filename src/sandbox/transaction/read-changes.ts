/** Reads what a command changed in its view of the workspace: one flat list with the state of each file before and after. */

import { chmodSync, type Stats } from 'node:fs'
import { errorText, hasCode } from '../../kit/errors.ts'
import type { Change, EntryState } from '../../runtime/changes.ts'
import type { Log } from '../../runtime/port.ts'
import type { PrivateView } from '../contract.ts'
import type { Libc } from '../libc.ts'
import { type CacheLayer, keepCaches } from './cache-layer.ts'
import { bytePath, bytesOf, createFileHasher, createPause, linkTarget } from './layer-files.ts'
import type { Transaction } from './transaction-folder.ts'
import { type Difference, join, type Walked, walkUpper } from './walk-upper.ts'

type ReadOptions = {
  /** Absolute paths. */
  readonly up: string
  readonly workspace: string
  readonly libc: Libc
  readonly hasCaches?: boolean
  readonly limits?: ReadLimits
  readonly signal?: AbortSignal
}

type ReadLimits = { readonly changes: number; readonly bytes: number }

type ReadChanges = {
  readonly changes: readonly Change[]
  /** Cache folders, relative to the workspace, with one character per byte. */
  readonly caches: readonly string[]
}

/** Allows more changes than any build makes outside its caches, and as many bytes as are hashed in some ten seconds. */
const usualLimits: ReadLimits = { changes: 200_000, bytes: 8 * 2 ** 30 }

/** The most changes whose digests before the command are computed: these cost as much as those after it, and only people read them. */
const MOST_BEFORE = 1_000
/** The largest file, in bytes, whose digest before the command is computed only for people. */
const LARGE_BEFORE = 64 * 2 ** 20

/**
 * A file with the same content and mode is unchanged, also when its time is new. @throws Error that says why the changes cannot be read
 */
export async function readChanges({ up, workspace, libc, hasCaches, limits = usualLimits, signal }: ReadOptions): Promise<ReadChanges> {
  const slice = createPause()
  const pause = () => {
    if (signal?.aborted) throw new Error('the call was cancelled')
    return slice()
  }
  const layers = { up: bytePath(up), lower: bytePath(workspace) }
  const { differences, caches } = await walk({ ...layers, libc, most: limits.changes, hasCaches, pause })
  const bytes = differences.reduce((sum, { after }) => sum + (after?.isFile() ? after.size : 0), 0)
  if (bytes > limits.bytes) throw unreadable(`its files have ${bytes} bytes, more than ${limits.bytes}`)
  const changes: Change[] = []
  const hashFile = createFileHasher(libc, pause)
  const few = differences.length <= MOST_BEFORE
  for (const difference of differences) {
    await pause()
    const { before, after } = await states({ ...layers, difference, few, hashFile })
    if (before === undefined || after === undefined || !isSame(before, after)) changes.push(named({ path: difference.path, before, after }))
  }
  return { changes, caches }
}

async function walk(walking: Parameters<typeof walkUpper>[0]): Promise<Walked> {
  try {
    return await walkUpper(walking)
  } catch (error) {
    throw unreadable(reason(error))
  }
}

/** The kernel's message would repeat a path of thousands of characters. */
function reason(error: unknown): string {
  return hasCode(error, 'ENAMETOOLONG') ? 'its folders are nested too deeply' : errorText(error)
}

function unreadable(why: string): Error {
  return new Error(`the changes of the command cannot be read: ${why}; they were not applied`)
}

type HashFile = ReturnType<typeof createFileHasher>
type StatesQuery = {
  readonly up: string
  readonly lower: string
  readonly difference: Difference
  /** There are few changes, so also hash what differs anyway. */
  readonly few: boolean
  readonly hashFile: HashFile
}

async function states({ up, lower, difference: { path, before, after }, few, hashFile }: StatesQuery) {
  const compares = before !== undefined && after !== undefined && isLike(before, after)
  const hashes = compares || (few && before !== undefined && before.size <= LARGE_BEFORE)
  return {
    before: before && (await stateOf({ path: join(lower, path), stat: before, hash: hashes ? hashLower : undefined, hashFile })),
    after: after && (await stateOf({ path: join(up, path), stat: after, hash: hashUpper, hashFile })),
  }
}

type Hash = (path: string, stat: Stats, hashFile: HashFile) => Promise<string | undefined>
type FileToRead = { readonly path: string; readonly stat: Stats; readonly hash: Hash | undefined; readonly hashFile: HashFile }

async function stateOf({ path, stat, hash, hashFile }: FileToRead): Promise<EntryState> {
  const mode = stat.mode & 0o7777
  if (stat.isDirectory()) return { kind: 'folder', mode }
  if (stat.isSymbolicLink()) return { kind: 'link', mode, target: linkTarget(path) }
  if (!stat.isFile()) return { kind: 'other', mode }
  const sha256 = await hash?.(path, stat, hashFile)
  return { kind: 'file', mode, size: stat.size, sha256 }
}

/** Returns undefined for a file of the workspace that we cannot read or that was removed meanwhile: the commit finds out. */
const hashLower: Hash = (path, _, hashFile) => hashFile(path).catch(() => undefined)

/** Gives us the permission to read meanwhile, which a command may take from its own file. */
const hashUpper: Hash = async (path, { mode }, hashFile) => {
  const closed = (mode & 0o400) === 0
  try {
    if (closed) chmodSync(bytesOf(path), 0o400)
    return await hashFile(path)
  } catch (error) {
    throw unreadable(`${JSON.stringify(path)}: ${reason(error)}`)
  } finally {
    if (closed) chmodSync(bytesOf(path), mode & 0o7777)
  }
}

/** Tells whether the files may have the same content. */
function isLike(before: Stats, after: Stats): boolean {
  return before.isFile() && after.isFile() && before.size === after.size
}

function isSame(before: EntryState, after: EntryState): boolean {
  const digests = before.kind !== 'file' || (before.sha256 !== undefined && before.sha256 === after.sha256)
  return before.kind === after.kind && before.kind !== 'other' && before.mode === after.mode && before.target === after.target && digests
}

/** Keeps the bytes of a path that is not UTF-8. */
function named({ path, ...states }: { readonly path: string } & Pick<Change, 'before' | 'after'>): Change {
  const bytes = bytesOf(path)
  const text = bytes.toString()
  const { before, after } = states
  return {
    path: text,
    ...(Buffer.from(text).equals(bytes) ? {} : { bytes: bytes.toString('base64') }),
    ...(before && { before }),
    ...(after && { after }),
  }
}

type ViewOptions = {
  readonly transaction: Transaction
  readonly workspace: string
  /** The folder outside the workspace that the view covers, too. */
  readonly outside: string | undefined
  readonly libc: Libc
  readonly cache: CacheLayer
  readonly log: Log
}

/** Gives the caller of a command what the command changed; reads it at the first request. */
export function createPrivateView({ transaction, workspace, outside, libc, cache, log }: ViewOptions): PrivateView {
  const { id, folder, drop } = transaction
  const up = `${folder}/up`
  const state: { read?: Promise<ReadChanges> } = {}
  const read = async (signal?: AbortSignal) => {
    const found = await readChanges({ up, workspace, libc, signal })
    try {
      cache.setAside(folder, found.caches)
    } catch (error) {
      notKept(error)
    }
    if (outside === undefined) return found
    const more = await readChanges({ up: `${up}.git`, workspace: outside, libc, hasCaches: false, signal })
    return { ...found, changes: [...found.changes, ...more.changes.map((change) => below(outside, change))] }
  }
  const notKept = (error: unknown) => log('debug', 'sandbox: caches of a command were not kept', { why: String(error) })
  const once = (signal?: AbortSignal) => {
    state.read ??= read(signal)
    return state.read
  }
  return {
    id,
    folder,
    changes: async (signal) => (await once(signal)).changes,
    caches: async () => (await once()).caches.map((path) => bytesOf(path).toString()),
    keepCaches: () => keepCaches(folder, false).catch(notKept),
    drop,
  }
}

/** Names the change by its absolute path. */
function below(folder: string, { path, bytes, ...states }: Change): Change {
  const whole = bytes && Buffer.concat([Buffer.from(`${folder}/`), Buffer.from(bytes, 'base64')]).toString('base64')
  return { path: `${folder}/${path}`, ...(whole && { bytes: whole }), ...states }
}
