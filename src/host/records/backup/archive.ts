/** Writes and restores a backup as a folder, or as one compressed file with the system's tar. */

import { chmodSync, closeSync, fsyncSync, mkdirSync, openSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { FailureError } from '../../failure.ts'
import type { Manifest } from './manifest.ts'
import { built, builtFile } from './partial-folder.ts'
import { type RestoreOptions, restoreBackup } from './restore-backup.ts'
import { type BackupOptions, type WrittenBackup, writeBackup } from './write-backup.ts'

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
    try {
      await unpack(backup, tree, signal)
      return await restoreBackup({ ...options, backup: tree }, folder)
    } finally {
      rmSync(tree, { recursive: true, force: true })
    }
  })
}

function isArchive(path: string): boolean {
  return /\.(tar\.gz|tgz)$/.test(path)
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
  const said = await child.stderr.text()
  signal.throwIfAborted()
  if ((await child.exited) !== 0) throw new FailureError('error', `tar: ${said.trim().split('\n')[0]}`)
}
