/** Reads the files of a plugin with their digests, refuses what no plugin needs, and copies them. It runs nothing. */

import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeSync,
} from 'node:fs'
import { dirname, isAbsolute, join, sep } from 'node:path'
import { errorText } from '../../../kit/errors.ts'
import { canonical } from '../../../kit/json.ts'
import { sha256 } from '../../../kit/sha256.ts'
import { grouped, quote } from '../../../kit/text.ts'

/** Maps each path in the plugin to `x` for a program, `-` for another file or `l` for a link, and the digest of its content. */
export type FileDigests = { readonly [path: string]: string }

export type PluginFiles =
  | { readonly ok: true; readonly digest: string; readonly files: FileDigests; readonly stamp: string }
  | { readonly ok: false; readonly why: string }

const mostFiles = 5_000
const mostBytes = 128 * 1024 * 1024
const mostDepth = 16

class Refusal extends Error {}

/** Never throws. `known`: an earlier result for the same folder, which is returned while no file has another stamp. */
export function readPluginFiles(folder: string, known?: PluginFiles): PluginFiles {
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

/** @throws Refusal for what a plugin may not hold */
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
  if (isAbsolute(target)) throw new Refusal(`${leads}, out of the plugin; replace it by a copy`)
  let real: string
  try {
    real = realpathSync(join(root, path))
  } catch {
    throw new Refusal(`${leads}, which does not exist; remove it`)
  }
  if (!real.startsWith(root + sep)) throw new Refusal(`${leads}, out of the plugin; replace it by a copy`)
}

function digestOf(folder: string, { path, kind }: Entry): string {
  const at = join(folder, path)
  if (kind === 'link') return `l ${sha256(readlinkSync(at))}`
  const hasher = new Bun.CryptoHasher('sha256')
  for (const piece of piecesOf(at)) hasher.update(piece)
  return `${kind === 'program' ? 'x' : '-'} ${hasher.digest('hex')}`
}

/** Opens no link, and waits for no FIFO that has taken the place of the file. */
function* piecesOf(path: string): Generator<Uint8Array> {
  const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  const chunk = Buffer.allocUnsafe(1 << 20)
  try {
    for (let count = readSync(file, chunk); count > 0; count = readSync(file, chunk)) yield chunk.subarray(0, count)
  } finally {
    closeSync(file)
  }
}

/**
 * Copies exactly the files of that digest into a folder that does not exist yet. The copy is hashed itself, so that a file that changes
 * meanwhile does not get in. @returns why not
 */
export function copyPlugin(from: string, to: string, { digest, files }: Extract<PluginFiles, { ok: true }>): string | undefined {
  const draft = join(dirname(to), `.new-${crypto.randomUUID()}`)
  try {
    mkdirSync(draft, { recursive: true, mode: 0o700 })
    for (const [path, known] of Object.entries(files)) copyFile(join(from, path), join(draft, path), known)
    const copied = readPluginFiles(draft)
    if (!copied.ok) return copied.why
    if (copied.digest !== digest) return 'its files changed while they were copied; try again'
    renameSync(draft, to)
    return undefined
  } catch (error) {
    return errorText(error)
  } finally {
    rmSync(draft, { recursive: true, force: true })
  }
}

function copyFile(from: string, to: string, known: string): void {
  mkdirSync(dirname(to), { recursive: true, mode: 0o700 })
  if (known.startsWith('l')) {
    symlinkSync(readlinkSync(from), to)
    return
  }
  const file = openSync(to, 'wx', 0o600)
  try {
    for (const piece of piecesOf(from)) for (let at = 0; at < piece.length; ) at += writeSync(file, piece, at, piece.length - at)
  } finally {
    closeSync(file)
  }
  chmodSync(to, known.startsWith('x') ? 0o700 : 0o600)
}

/** @returns why the file of a manifest cannot run */
export function whyNoProgram(folder: string, path: string): string | undefined {
  const found = lstatSync(join(folder, path), { throwIfNoEntry: false })
  if (found === undefined) return `${quote(path)} does not exist`
  try {
    if (!lstatSync(realpathSync(join(folder, path))).isFile()) return `${quote(path)} is not a file`
    accessSync(join(folder, path), constants.X_OK)
    return undefined
  } catch {
    return `${quote(path)} is not executable; run: chmod +x ${quote(path)}`
  }
}
