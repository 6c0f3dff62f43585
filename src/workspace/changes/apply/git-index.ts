/** Compares two git indexes by their entries: git, prompts and editors rewrite an index only to refresh the times of files in it. */

import { readFileSync } from 'node:fs'
import { flags, hold, slot } from '../../descriptor.ts'
import { readEntries, statBytes } from '../tree/index-entries.ts'
import { folderOf, lastOf, type RawName, rawSlot } from '../tree/names.ts'
import type { Tree } from '../tree/tree.ts'

/** The only index that is compared; those of other repositories in the workspace must be untouched. */
const INDEX = '.git/index'

/** What begins a view keeps a link to the index of that moment under this name in the folder of the change set. */
const KEPT = 'index'

const LARGEST = 256 * 1024 * 1024
/** Times, device, inode, owner and size stand before and after the mode; git fills them in again when they are missing. */
const STAT_BEFORE_MODE = 24
const MODE_BYTES = 4
const DIGEST_BYTES = 20
const CHECKSUM_BYTES = 20

/** @returns true when the index is the one of the beginning but for such times */
export function isSameIndex(workspace: Tree, setFolder: string, raw: RawName): boolean {
  if (raw !== INDEX) return false
  try {
    const now = read(rawSlot(workspace.folder(folderOf(raw)), lastOf(raw)))
    using folder = hold(setFolder, flags.folder)
    const then = read(slot(folder, KEPT))
    return now !== undefined && then !== undefined && sayings(now) === sayings(then)
  } catch {
    return false
  }
}

/** @returns a digest of the entries of the index at that path; undefined for anything else */
export function indexDigest(tree: Tree, raw: RawName): string | undefined {
  if (raw !== INDEX) return undefined
  try {
    const index = read(rawSlot(tree.folder(folderOf(raw)), lastOf(raw)))
    return index && sayings(index)
  } catch {
    return undefined
  }
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
function sayings(index: Buffer): string {
  const hasher = new Bun.CryptoHasher('sha256')
  hasher.update(index.subarray(4, 12))
  const end = readEntries(index, DIGEST_BYTES, ({ at, end }) => {
    hasher.update(index.subarray(at + STAT_BEFORE_MODE, at + STAT_BEFORE_MODE + MODE_BYTES))
    hasher.update(index.subarray(at + statBytes, end))
  })
  for (const extension of lasting(index, end)) hasher.update(extension)
  return hasher.digest('hex')
}

/** Extensions that are no caches. @throws when their sizes are not right */
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
