/** Gives the caller of a command what the command changed in its view of the workspace. */

import { join } from 'node:path'
import type { Log, PrivateView } from '../confinement.ts'
import type { Libc } from '../libc.ts'
import { type CacheLayer, keepCaches } from './cache-layer.ts'
import { bytesOf } from './layer-files.ts'
import { type ReadChanges, readChanges } from './read-changes.ts'
import type { Transaction } from './transaction-folder.ts'

type Viewing = {
  readonly transaction: Transaction
  readonly workspace: string
  readonly libc: Libc
  readonly cache: CacheLayer
  readonly log: Log
}

export function createPrivateView({ transaction, workspace, libc, cache, log }: Viewing): PrivateView {
  const { id, folder, drop } = transaction
  const up = join(folder, 'up')
  const state: { read?: Promise<ReadChanges> } = {}
  const read = async (signal?: AbortSignal) => {
    const found = await readChanges({ up, workspace, libc, signal })
    try {
      cache.setAside(folder, found.caches)
    } catch (error) {
      notKept(error)
    }
    return found
  }
  const notKept = (error: unknown) => log('debug', 'sandbox: caches of a command were not kept', { why: String(error) })
  const once = (signal?: AbortSignal) => {
    state.read ??= read(signal)
    return state.read
  }
  return {
    id,
    folder,
    changes: async (signal) => (await once(signal)).changes,
    caches: async () => (await once()).caches.map((path) => bytesOf(path).toString()),
    keepCaches: () => keepCaches(folder, false).catch(notKept),
    drop,
  }
}
