/** Reads the files of a plugin or skill with their digests, refuses what neither needs, and copies them. It runs nothing. */

import { constants, cpSync, lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, realpathSync, renameSync, rmSync } from 'node:fs'
import { dirname, isAbsolute, join, sep } from 'node:path'
import { atEnd, attempt, errorText } from '../../../../kit/errors.ts'
import { canonical } from '../../../../kit/json.ts'
import { sha256 } from '../../../../kit/sha256.ts'
import { grouped, quote } from '../../../../kit/text.ts'
import { FailureError } from '../../../failure.ts'

/** Maps each path in the folder to `x` for a program, `-` for another file or `l` for a link, and the digest of its content. */
export type FileDigests = { readonly [path: string]: string }

export type FolderFiles =
  | { readonly ok: true; readonly digest: string; readonly files: FileDigests; readonly stamp: string }
  | { readonly ok: false; readonly why: string }

export const mostFiles = 5_000
const mostBytes = 128 * 1024 * 1024
const mostDepth = 16

class Refusal extends Error {}

/** Never throws. `known`: an earlier result for the same folder, which is returned while no file has another stamp. */
export function readFolderFiles(folder: string, known?: FolderFiles): FolderFiles {
  try {
    const entries = listEntries(folder)
    const stamp = sha256(entries.map(({ path, stamp }) => `${path}\0${stamp}`).join('\n'))
    if (known?.ok && known.stamp === stamp) return known
    const files = Object.fromEntries(entries.map((entry) => [entry.path, digestOf(folder, entry)]))
    return { ok: true, digest: sha256(canonical(files)), files, stamp }
  } catch (error) {
    return { ok: false, why: error instanceof Refusal ? error.message : `it cannot be read: ${errorText(error)}` }
  }
}

type Entry = { readonly path: string; readonly kind: 'file' | 'program' | 'link'; readonly stamp: string }

/** @throws Refusal for what such a folder may not hold */
function listEntries(folder: string): readonly Entry[] {
  const entries: Entry[] = []
  const root = realpathSync(folder)
  let bytes = 0
  const walk = (below: string, depth: number) => {
    if (depth > mostDepth) throw new Refusal(`its folders are nested more than ${mostDepth} deep, at ${quote(below)}`)
    for (const name of readdirSync(join(root, below)).toSorted()) {
      if (below === '' && name === '.git') continue
      const path = below === '' ? name : `${below}/${name}`
      const found = lstatSync(join(root, path), { bigint: true })
      const { ino, size, mode, mtimeNs, ctimeNs } = found
      if (found.isDirectory()) {
        walk(path, depth + 1)
        continue
      }
      if (found.isSymbolicLink()) assertInside(root, path)
      else if (!found.isFile()) throw new Refusal(`${quote(path)} is neither a file, a folder nor a link; remove it`)
      if (!found.isSymbolicLink() && (mode & 0o6000n) !== 0n)
        throw new Refusal(`${quote(path)} is a set-user-ID or set-group-ID program; run: chmod ug-s`)
      bytes += Number(size)
      if (bytes > mostBytes) throw new Refusal(`it has more than ${grouped(mostBytes)} bytes, which are the limit`)
      if (entries.length >= mostFiles) throw new Refusal(`it has more than ${grouped(mostFiles)} files, which are the limit`)
      const kind = found.isSymbolicLink() ? 'link' : (mode & 0o100n) === 0n ? 'file' : 'program'
      entries.push({ path, kind, stamp: [ino, size, mode, mtimeNs, ctimeNs].join(':') })
    }
  }
  walk('', 0)
  return entries
}

function assertInside(root: string, path: string): void {
  const target = readlinkSync(join(root, path))
  const leads = `the link ${quote(path)} leads to ${quote(target)}`
  if (isAbsolute(target)) throw new Refusal(`${leads}, out of its folder; replace it by a copy`)
  const real = attempt(() => realpathSync(join(root, path)))
  if (real === undefined) throw new Refusal(`${leads}, which does not exist; remove it`)
  if (!real.startsWith(root + sep)) throw new Refusal(`${leads}, out of its folder; replace it by a copy`)
}

/** Opens no link, and waits for no FIFO that has taken the place of the file. */
const ownFile = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

function digestOf(folder: string, { path, kind }: Entry): string {
  const at = join(folder, path)
  if (kind === 'link') return `l ${sha256(readlinkSync(at))}`
  return `${kind === 'program' ? 'x' : '-'} ${sha256(readFileSync(at, { flag: ownFile }))}`
}

/**
 * Copies exactly the files of that digest into a folder that does not exist yet. The copy is hashed itself, so that a file that changes
 * meanwhile does not get in. @throws FailureError when it cannot
 */
export function copyFolder(from: string, to: string, digest: string): void {
  const draft = join(dirname(to), `.new-${crypto.randomUUID()}`)
  using _end = atEnd(() => rmSync(draft, { recursive: true, force: true }))
  mkdirSync(dirname(to), { recursive: true, mode: 0o700 })
  cpSync(from, draft, { recursive: true, verbatimSymlinks: true, filter: (path) => path !== join(from, '.git') })
  const copied = readFolderFiles(draft)
  const why = !copied.ok ? copied.why : copied.digest === digest ? undefined : 'its files changed while they were copied; try again'
  if (why !== undefined) throw new FailureError('error', `${from} cannot be copied: ${why}`)
  renameSync(draft, to)
}
