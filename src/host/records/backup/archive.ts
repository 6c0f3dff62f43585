/** Writes and restores a backup as a folder, or as one compressed file with the system's tar. */

import { chmodSync, existsSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { atEnd } from '../../../kit/errors.ts'
import { createDatabaseCopies } from '../../../memory/rebuild/database-copy.ts'
import { flushFile } from '../../../workspace/changes/set/plan.ts'
import { FailureError } from '../../failure.ts'
import { assertWhole, copyPieces, isArchive, type Manifest, readManifest } from './manifest.ts'
import { built } from './partial-folder.ts'
import { type BackupOptions, type WrittenBackup, writeBackup } from './write-backup.ts'

/** @throws FailureError; nothing is left at the target then */
export async function writeArchive(options: BackupOptions): Promise<WrittenBackup> {
  const { target, signal } = options
  if (!isArchive(target)) return built(target, (folder) => writeBackup({ ...options, target: folder }))
  if (existsSync(target)) throw new FailureError('error', `"${target}" exists already; name a new file`)
  const pack = async (folder: string) => {
    const [tree, file] = [join(folder, 'tree'), join(folder, 'file')]
    mkdirSync(tree)
    const result = await writeBackup({ ...options, target: tree })
    await tar(['-C', tree, '-czf', file, '.'], signal)
    chmodSync(file, 0o600)
    flushFile(file)
    return result
  }
  return built(target, pack, 'file')
}

/** @throws FailureError; nothing is left at the target then */
export async function restoreArchive(options: RestoreOptions): Promise<Manifest> {
  const { backup, target, signal } = options
  if (!isArchive(backup)) return built(target, (folder) => restoreBackup(options, folder))
  return built(target, async (folder) => {
    const tree = `${folder}.tree`
    using _end = atEnd(() => rmSync(tree, { recursive: true, force: true }))
    // The digests of the manifest say afterwards whether it is what was packed.
    mkdirSync(tree, { recursive: true, mode: 0o700 })
    await tar(['-C', tree, '--no-same-owner', '-xzf', backup], signal)
    return await restoreBackup({ ...options, backup: tree }, folder)
  })
}

/** @throws FailureError when tar cannot do it */
async function tar(args: readonly string[], signal: AbortSignal): Promise<void> {
  const program = Bun.which('tar', { PATH: '/usr/bin:/bin:/usr/local/bin' })
  if (program === null) throw new FailureError('error', 'an archive needs the program tar; name a folder instead')
  const child = Bun.spawn([program, ...args], { stdin: 'ignore', stdout: 'ignore', stderr: 'pipe', env: {}, signal })
  const stderr = await child.stderr.text()
  signal.throwIfAborted()
  if ((await child.exited) !== 0) throw new FailureError('error', `tar: ${stderr.trim().split('\n')[0]}`)
}

/** `target` is the home to be. */
type RestoreOptions = Pick<BackupOptions, 'openCopy' | 'target' | 'progress' | 'signal'> & { readonly backup: string }

/** Checks every digest, and copies a backup into an empty folder that will become the target when it is whole. @throws FailureError */
async function restoreBackup({ openCopy, backup, target, progress, signal }: RestoreOptions, folder: string): Promise<Manifest> {
  const manifest = readManifest(backup)
  await assertWhole(backup, manifest, (share) => progress(share / 2))
  for (const [at, { path, mode, sha256 }] of manifest.files.entries()) {
    signal.throwIfAborted()
    const copied = copyPieces(join(backup, path), join(folder, path), 0o600)
    chmodSync(join(folder, path), mode)
    if (copied?.sha256 !== sha256) throw new FailureError('integrity', `${path} changed while it was copied; nothing was restored`)
    progress(0.5 + at / manifest.files.length / 2)
    await Bun.sleep(0)
  }
  // The database names the folders of agents; in another home they are elsewhere.
  if (manifest.home !== target)
    await openCopy(join(folder, manifest.database), async ({ store }) => createDatabaseCopies(store).moveAgents(manifest.home, target))
  progress(1)
  return manifest
}
