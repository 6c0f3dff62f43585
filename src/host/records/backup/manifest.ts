/** Describes a backup: which files it has, with their digests. A folder without its manifest is not a backup. */

import { closeSync, fsyncSync, mkdirSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import { atEnd, attempt } from '../../../kit/errors.ts'
import { parseJson } from '../../../kit/json.ts'
import { realDisk, writeAll } from '../../../memory/agent-files/disk.ts'
import { FailureError } from '../../failure.ts'

const relative = z.string().refine((path) => path !== '' && !path.startsWith('/') && !path.split('/').includes('..'), 'not a path inside')

const manifestShape = z.object({
  format: z.literal(1),
  made: z.string(),
  /** The home that was copied. */
  home: z.string(),
  with_keys: z.boolean(),
  /** Which of the files is the database. */
  database: relative,
  receipts: z.nullable(z.object({ log_id: z.string(), count: z.int(), head: z.string() })),
  files: z.array(z.object({ path: relative, size: z.int(), mode: z.int(), sha256: z.string() })),
  /** The paths that were not copied, because they are not regular files, or are backups themselves. */
  left_out: z.array(z.string()),
})

export type Manifest = z.infer<typeof manifestShape>
export type ManifestFile = Manifest['files'][number]

export const manifestName = 'manifest.json'

/** Receives the progress from time to time, from 0 to 1. Other work may run meanwhile. */
export type Progress = (share: number) => void

/** @throws FailureError `error` when the folder is not a backup, `integrity` when its manifest is damaged */
export function readManifest(folder: string): Manifest {
  const text = textOf(join(folder, manifestName))
  if (text === undefined) throw new FailureError('error', `"${folder}" is not a backup: it has no ${manifestName}`)
  const read = manifestShape.safeParse(parseJson(text))
  if (read.success) return read.data
  throw new FailureError(
    'integrity',
    `${join(folder, manifestName)} is damaged: ${z.prettifyError(read.error).split('\n')[0]}; take another backup`,
  )
}

function textOf(path: string): string | undefined {
  return attempt(() => readFileSync(path, 'utf8'))
}

/** Where the control plane keeps its own database; its tables in another file are a backup. */
const ownControl = 'control/control.sqlite'
const controlTable = 'CREATE TABLE agent_keys'

export function isArchive(path: string): boolean {
  return /\.(tar\.gz|tgz)$/.test(path)
}

/** Tells whether a path below the home is a backup of a home or a control plane. */
export function isBackup(home: string, path: string, isFolder: boolean): boolean {
  const at = join(home, path)
  if (isFolder) return isManifest(textOf(join(at, manifestName)))
  if (isArchive(path)) {
    const tar = Bun.which('tar', { PATH: '/usr/bin:/bin:/usr/local/bin' })
    return (
      tar !== null && isManifest(Bun.spawnSync([tar, '-xzOf', at, `./${manifestName}`], { stderr: 'ignore', env: {} }).stdout.toString())
    )
  }
  return path !== ownControl && startOf(at).includes(controlTable)
}

function isManifest(text: string | undefined): boolean {
  return text !== undefined && manifestShape.safeParse(parseJson(text)).success
}

/** Returns the beginning of a SQLite file, which names its tables; empty for other files. */
function startOf(path: string): string {
  const text = (bytes: number) => {
    const pieces: string[] = []
    digestOf(path, { most: bytes, each: (piece) => void pieces.push(Buffer.from(piece).toString('latin1')) })
    return pieces.join('')
  }
  return text(16).startsWith('SQLite format 3') ? text(pieceBytes) : ''
}

/** Compares every file of the folder with the manifest. @throws FailureError `integrity` that names the first difference */
export async function assertWhole(folder: string, { files }: Manifest, progress: Progress): Promise<void> {
  const bytes = files.reduce((sum, { size }) => sum + size, 0)
  let done = 0
  for (const { path, size, sha256 } of files) {
    const found = digestOf(join(folder, path))
    if (found === undefined) throw altered(path, 'is missing')
    if (found.sha256 !== sha256 || found.size !== size) throw altered(path, 'was altered')
    done += size
    progress(bytes === 0 ? 1 : done / bytes)
    await Bun.sleep(0)
  }
  const known = new Set([manifestName, ...files.map(({ path }) => path)])
  const extra = filesBelow(folder).find((path) => !known.has(path))
  if (extra !== undefined) throw altered(extra, 'does not belong to it')
}

function altered(path: string, what: string): FailureError {
  return new FailureError('integrity', `this backup is not whole: ${path} ${what}; take another one`)
}

const pieceBytes = 1024 * 1024

/** Reads a regular file in pieces, at most `most` bytes of it. @returns undefined when it cannot be read */
export function digestOf(path: string, { most = Number.POSITIVE_INFINITY, each = () => {} }: DigestOptions = {}): Digest | undefined {
  const hasher = new Bun.CryptoHasher('sha256')
  const piece = new Uint8Array(pieceBytes)
  return attempt(() => {
    const file = openSync(path, 'r')
    using _end = atEnd(() => closeSync(file))
    let size = 0
    for (let read = -1; read !== 0; size += read) {
      read = readSync(file, piece, 0, Math.min(pieceBytes, most - size), size)
      hasher.update(piece.subarray(0, read))
      each(piece.subarray(0, read))
    }
    return { size, sha256: hasher.digest('hex') }
  })
}

/** Copies at most `most` bytes of a regular file into a new one, and waits until they are on the disk. @returns undefined as `digestOf` */
export function copyPieces(from: string, to: string, mode: number, most?: number): Digest | undefined {
  mkdirSync(dirname(to), { recursive: true, mode: 0o700 })
  const file = openSync(to, 'wx', mode)
  using _end = atEnd(() => closeSync(file))
  const digest = digestOf(from, { most, each: (piece) => writeAll(realDisk, file, piece) })
  fsyncSync(file)
  return digest
}

type DigestOptions = { readonly most?: number; readonly each?: (piece: Uint8Array) => void }
export type Digest = { readonly size: number; readonly sha256: string }

/** Returns the paths of everything below the folder that is not a folder itself. */
function filesBelow(folder: string): readonly string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  return entries.flatMap((entry) => (entry.isDirectory() ? [] : [join(entry.parentPath, entry.name).slice(folder.length + 1)]))
}
