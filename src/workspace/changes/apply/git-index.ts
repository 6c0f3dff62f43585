/** Compares two git indexes by their entries: git, prompts and editors rewrite an index only to refresh the times of files in it. */

import { readFileSync } from 'node:fs'
import { attempt } from '../../../kit/errors.ts'
import { flags, hold, slot } from '../../descriptor.ts'
import { folderOf, lastOf, type RawName, rawSlot } from '../tree/entry.ts'
import type { Tree } from '../tree/tree.ts'

/** The only index that is compared, unless git's directory lies outside; those of other repositories in the workspace must be untouched. */
const INDEX = '.git/index'
const isIndex = (raw: RawName) => raw === INDEX || (raw.startsWith('/') && lastOf(raw) === 'index')

/** When a view begins, the folder of the change set gets a link to the index of that moment under this name. */
const KEPT = 'index'

const LARGEST = 256 * 1024 * 1024
/** Times, device, inode, owner and size stand before and after the mode; git fills them in again when they are missing. */
const STAT_BEFORE_MODE = 24
const MODE_BYTES = 4
const DIGEST_BYTES = 20
const CHECKSUM_BYTES = 20

/** @returns true when the index is the one of the beginning but for such times */
export function isSameIndex(workspace: Tree, setFolder: string, raw: RawName): boolean {
  if (!isIndex(raw)) return false
  const isSame = attempt(() => {
    const now = read(rawSlot(workspace.folder(folderOf(raw)), lastOf(raw)))
    using folder = hold(setFolder, flags.folder)
    const then = read(slot(folder, KEPT))
    return now !== undefined && then !== undefined && entriesDigest(now) === entriesDigest(then)
  })
  return isSame ?? false
}

/** @returns a digest of the entries of the index at that path; undefined for anything else */
export function indexDigest(tree: Tree, raw: RawName): string | undefined {
  if (!isIndex(raw)) return undefined
  return attempt(() => {
    const index = read(rawSlot(tree.folder(folderOf(raw)), lastOf(raw)))
    return index && entriesDigest(index)
  })
}

function read(path: string | Buffer): Buffer | undefined {
  using file = hold(path, flags.readHere)
  const content = readFileSync(file.fd)
  return content.length <= LARGEST && content.toString('latin1', 0, 4) === 'DIRC' ? content : undefined
}

/** @returns the paths that an index holds. @throws Error for an index that cannot be read to its end */
export function pathsOfIndex(index: Buffer): ReadonlySet<string> {
  const paths = new Set<string>()
  lasting(
    index,
    readEntries(index, DIGEST_BYTES, ({ name }) => paths.add(Buffer.from(name, 'latin1').toString())),
  )
  return paths
}

/** @returns a digest of everything an index says but for the state of files; never equal for what cannot be read to its end */
function entriesDigest(index: Buffer): string {
  const hasher = new Bun.CryptoHasher('sha256')
  hasher.update(index.subarray(4, 12))
  const end = readEntries(index, DIGEST_BYTES, ({ at, end }) => {
    hasher.update(index.subarray(at + STAT_BEFORE_MODE, at + STAT_BEFORE_MODE + MODE_BYTES))
    hasher.update(index.subarray(at + statBytes, end))
  })
  for (const extension of lasting(index, end)) hasher.update(extension)
  return hasher.digest('hex')
}

/** Returns the extensions that are not caches. @throws when their sizes are not right */
function lasting(index: Buffer, start: number): Buffer[] {
  const found: Buffer[] = []
  let at = start
  while (at < index.length - CHECKSUM_BYTES) {
    const end = at + 8 + index.readUInt32BE(at + 4)
    const name = index.toString('latin1', at, at + 4)
    if (name === 'link' || end > index.length - CHECKSUM_BYTES) throw new Error('an index that is not all in one file')
    if (!['TREE', 'UNTR', 'FSMN', 'EOIE', 'IEOT'].includes(name)) found.push(index.subarray(at, end))
    at = end
  }
  if (at !== index.length - CHECKSUM_BYTES) throw new Error('an index with more at its end')
  return found
}

/** `at` to `end` is the entry without padding; `name` has one character per byte. */
export type IndexEntry = {
  readonly at: number
  readonly end: number
  readonly name: string
  readonly mode: string
  readonly id: string
  /** 0 without a merge conflict. */
  readonly stage: number
  /** Git does not look at the file in the work tree: skip-worktree or assume-unchanged. */
  readonly isHidden: boolean
}

const modeAt = 24
const statBytes = 40

/** Reads the entries of a git index, of versions 2 to 4. @returns where the entries end @throws Error for what cannot be read to its end */
export function readEntries(index: Buffer, idBytes: number, use: (entry: IndexEntry) => void): number {
  const version = index.readUInt32BE(4)
  if (version < 2 || version > 4) throw new Error(`an index of version ${version}`)
  const count = index.readUInt32BE(8)
  const state = { at: 12, name: '' }
  for (let entry = 0; entry < count; entry++) {
    const { at } = state
    const flagsAt = at + statBytes + idBytes
    const flags = index.readUInt16BE(flagsAt)
    const more = (flags & 0x4000) === 0 ? 0 : index.readUInt16BE(flagsAt + 2)
    const fixed = flagsAt + ((flags & 0x4000) === 0 ? 2 : 4)
    const cut = version === 4 ? prefix(index, fixed) : { bytes: 0, less: state.name.length }
    const end = index.indexOf(0, fixed + cut.bytes)
    if (end < 0) throw new Error('an index that ends early')
    state.name = state.name.slice(0, Math.max(0, state.name.length - cut.less)) + index.toString('latin1', fixed + cut.bytes, end)
    const mode = index.readUInt32BE(at + modeAt).toString(8)
    const id = index.toString('hex', at + statBytes, at + statBytes + idBytes)
    use({ at, end, name: state.name, mode, id, stage: (flags >> 12) & 3, isHidden: (flags & 0x8000) !== 0 || (more & 0x4000) !== 0 })
    state.at = version === 4 ? end + 1 : at + (((end - at) >> 3) + 1) * 8
  }
  return state.at
}

/** In version 4 a number of one or more bytes says how much of the name before is left out. */
function prefix(index: Buffer, at: number): { readonly bytes: number; readonly less: number } {
  let byte = index[at] ?? 0
  const found = { bytes: 1, less: byte & 0x7f }
  while (byte & 0x80) {
    byte = index[at + found.bytes++] ?? 0
    found.less = (found.less + 1) * 128 + (byte & 0x7f)
  }
  return found
}
