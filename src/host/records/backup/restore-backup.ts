/** Restores a backup into an empty folder: it checks every digest first, and the folder appears when it is whole. */

import { chmodSync, closeSync, fsyncSync, mkdirSync, openSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { FailureError } from '../../failure.ts'
import { assertWhole, digestOf, type Manifest, type Progress, readManifest } from './manifest.ts'
import type { OpenCopy } from './write-backup.ts'

export type RestoreOptions = {
  readonly openCopy: OpenCopy
  readonly backup: string
  /** The home to be. */
  readonly target: string
  readonly progress: Progress
  readonly signal: AbortSignal
}

/** Copies into an empty folder that will become the target. @throws FailureError */
export async function restoreBackup({ openCopy, backup, target, progress, signal }: RestoreOptions, folder: string): Promise<Manifest> {
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
  try {
    const digest = digestOf(from, {
      each(piece) {
        for (let at = 0; at < piece.length; ) at += writeSync(file, piece, at, piece.length - at)
      },
    })
    fsyncSync(file)
    chmodSync(to, mode)
    return digest?.sha256
  } finally {
    closeSync(file)
  }
}

type Moving = { readonly folder: string; readonly target: string; readonly manifest: Manifest }

/** The database names the folders of agents; in another home they are elsewhere. */
async function moveAgents(openCopy: OpenCopy, { folder, target, manifest }: Moving): Promise<void> {
  if (manifest.home === target) return
  await openCopy(join(folder, manifest.database), async (memory) => (await memory.copies()).moveAgents(manifest.home, target))
}
