/** Prepares the transactions of one sandbox: a view of the workspace for each command. */

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { sha256 } from '../../kit/sha256.ts'
import type { PrivateView } from '../confinement.ts'
import type { Libc } from '../libc.ts'
import type { Places } from '../protect/places.ts'
import { type OverlayLaunch, overlayLaunch } from './overlay-launch.ts'
import { type OverlaySupport, tryOverlay } from './overlay-support.ts'
import { createPrivateView } from './private-view.ts'
import { subMountOf } from './sub-mounts.ts'
import { createTransaction, type Transaction } from './transaction-folder.ts'

export type Prepared = { readonly transaction: Transaction; readonly launch: OverlayLaunch }

export type Transactions = {
  /** Tries it at the first call. @returns why the workspace cannot have private views now */
  missing(): Promise<string | undefined>
  /** @throws Error when the folder cannot be made, or `missing` has not returned undefined before */
  prepare(): Prepared
  view(transaction: Transaction): PrivateView
}

type Making = { readonly places: Places; readonly bubblewrap: string; readonly libc: Libc }

export function createTransactions({ places, bubblewrap, libc }: Making): Transactions {
  const { workspace } = places
  const state: { trial?: Promise<OverlaySupport>; support?: OverlaySupport } = {}
  const cacheName = sha256(workspace).slice(0, 16)
  return {
    async missing() {
      const mount = subMountOf(workspace)
      if (mount !== undefined) return `another file system is mounted inside the workspace, at ${JSON.stringify(mount)}`
      state.trial ??= tryOverlay({ places, bubblewrap, libc })
      state.support = await state.trial
      return state.support.ok ? undefined : state.support.why
    },
    prepare() {
      const { support } = state
      if (!support?.ok) throw new Error('private views of the workspace were not tried')
      const cache = join(support.caches, cacheName)
      mkdirSync(cache, { recursive: true, mode: 0o700 })
      const transaction = createTransaction(support.base, { workspace, cache })
      const { way, programs } = support
      return { transaction, launch: overlayLaunch({ way, folder: transaction.folder, workspace, programs }) }
    },
    view: (transaction) => createPrivateView({ transaction, workspace, libc }),
  }
}
