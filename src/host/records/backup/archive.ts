/** Writes and restores a backup as a folder, or as one compressed file with the system's tar. */

import { chmodSync, closeSync, fsyncSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { atEnd } from '../../../kit/errors.ts'
import { createDatabaseCopies } from '../../../memory/rebuild/database-copy.ts'
import { FailureError } from '../../failure.ts'
import { assertWhole, digestOf, isArchive, type Manifest, type Progress, readManifest } from './manifest.ts'
import { built, builtFile } from './partial-folder.ts'
import { type BackupOptions, type OpenCopy, type WrittenBackup, writeBackup } from './write-backup.ts'

/** @throws FailureError; nothing is left at the target then */
export function writeArchive(options: BackupOptions): Promise<WrittenBackup> {
  const { target, signal } = options
  if (!isArchive(target)) return built(target, (folder) => writeBackup({ ...options, target: folder }))
  return builtFile(target, async (folder) => {
    const [tree, file] = [join(folder, 'tree'), join(folder, 'file')]
    mkdirSync(tree)
    const result = await writeBackup({ ...options, target: tree })
    await pack(tree, file, signal)
    return { file, result }
  })
}

/** @throws FailureError; nothing is left at the target then */
export async function restoreArchive(options: RestoreOptions): Promise<Manifest> {
  const { backup, target, signal } = options
  if (!isArchive(backup)) return built(target, (folder) => restoreBackup(options, folder))
  return built(target, async (folder) => {
    const tree = `${folder}.tree`
    using _end = atEnd(() => rmSync(tree, { recursive: true, force: true }))
    await unpack(backup, tree, signal)
    return await restoreBackup({ ...options, backup: tree }, folder)
  })
}

/** @throws FailureError when tar cannot do it */
async function pack(folder: string, file: string, signal: AbortSignal): Promise<void> {
  await tar(['-C', folder, '-czf', file, '.'], signal)
  chmodSync(file, 0o600)
  const packed = openSync(file, 'r')
  fsyncSync(packed)
  closeSync(packed)
}

/** The digests of the manifest say afterwards whether it is what was packed. @throws FailureError when tar cannot do it */
async function unpack(file: string, folder: string, signal: AbortSignal): Promise<void> {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  await tar(['-C', folder, '--no-same-owner', '-xzf', file], signal)
}

async function tar(args: readonly string[], signal: AbortSignal): Promise<void> {
  const program = Bun.which('tar', { PATH: '/usr/bin:/bin:/usr/local/bin' })
  if (program === null) throw new FailureError('error', 'an archive needs the program tar; name a folder instead')
  const child = Bun.spawn([program, ...args], { stdin: 'ignore', stdout: 'ignore', stderr: 'pipe', env: {}, signal })
  const stderr = await child.stderr.text()
  signal.throwIfAborted()
  if ((await child.exited) !== 0) throw new FailureError('error', `tar: ${stderr.trim().split('\n')[0]}`)
}

type RestoreOptions = {
  readonly openCopy: OpenCopy
  readonly backup: string
  /** The home to be. */
  readonly target: string
  readonly progress: Progress
  readonly signal: AbortSignal
}

/** Checks every digest, and copies a backup into an empty folder that will become the target when it is whole. @throws FailureError */
async function restoreBackup({ openCopy, backup, target, progress, signal }: RestoreOptions, folder: string): Promise<Manifest> {
  const manifest = readManifest(backup)
  await assertWhole(backup, manifest, (share) => progress(share / 2))
  for (const [at, { path, mode, sha256 }] of manifest.files.entries()) {
    signal.throwIfAborted()
    if (copied(join(backup, path), join(folder, path), mode) !== sha256)
      throw new FailureError('integrity', `${path} changed while it was copied; nothing was restored`)
    progress(0.5 + at / manifest.files.length / 2)
    await Bun.sleep(0)
  }
  await moveAgents(openCopy, { folder, target, manifest })
  progress(1)
  return manifest
}

/** @returns the digest of what was written */
function copied(from: string, to: string, mode: number): string | undefined {
  mkdirSync(dirname(to), { recursive: true, mode: 0o700 })
  const file = openSync(to, 'wx', 0o600)
  using _end = atEnd(() => closeSync(file))
  const digest = digestOf(from, {
    each(piece) {
      for (let at = 0; at < piece.length; ) at += writeSync(file, piece, at, piece.length - at)
    },
  })
  fsyncSync(file)
  chmodSync(to, mode)
  return digest?.sha256
}

type Moving = { readonly folder: string; readonly target: string; readonly manifest: Manifest }

/** The database names the folders of agents; in another home they are elsewhere. */
async function moveAgents(openCopy: OpenCopy, { folder, target, manifest }: Moving): Promise<void> {
  if (manifest.home === target) return
  await openCopy(join(folder, manifest.database), async (memory) => createDatabaseCopies(memory.store).moveAgents(manifest.home, target))
}
