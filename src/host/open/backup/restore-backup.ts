/** Restores a backup into an empty folder: it checks every digest first, and the folder appears when it is whole. */

import { chmodSync, closeSync, fsyncSync, mkdirSync, openSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Setup } from '../../api.ts'
import { FailureError } from '../../failure.ts'
import { withMemory } from '../open-records.ts'
import { assertWhole, digestOf, type Manifest, type Progress, readManifest } from './manifest.ts'
import { assertFree, built } from './partial-folder.ts'

export type RestoreOptions = {
  readonly setup: Pick<Setup, 'config' | 'log'>
  readonly backup: string
  /** The home to be. */
  readonly target: string
  readonly progress: Progress
  readonly signal: AbortSignal
}

/** @throws FailureError; nothing is left at the target then */
export async function restoreBackup({ setup, backup, target, progress, signal }: RestoreOptions): Promise<Manifest> {
  assertFree(target)
  const manifest = readManifest(backup)
  await assertWhole(backup, manifest, (share) => progress(share / 2))
  return built(target, async (folder) => {
    for (const [at, { path, mode, sha256 }] of manifest.files.entries()) {
      signal.throwIfAborted()
      if (copied(join(backup, path), join(folder, path), mode) !== sha256)
        throw new FailureError('integrity', `${path} changed while it was copied; nothing was restored`)
      progress(0.5 + at / manifest.files.length / 2)
      await Bun.sleep(0)
    }
    await moveAgents(setup, { folder, target, manifest })
    progress(1)
    return manifest
  })
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
async function moveAgents({ config, log }: RestoreOptions['setup'], { folder, target, manifest }: Moving): Promise<void> {
  if (manifest.home === target) return
  const database = manifest.files[0]?.path ?? 'memory.sqlite'
  const setup = { log, config: { ...config, memory: { ...config.memory, path: join(folder, database) } } }
  await withMemory(setup, async (memory) => (await memory.copies()).moveAgents(manifest.home, target))
}
