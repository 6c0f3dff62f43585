/** Prepares the transactions of one sandbox: a view of the workspace for each command. */

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { sha256 } from '../../kit/sha256.ts'
import type { PrivateView, PrivateViews } from '../confinement.ts'
import type { Libc } from '../libc.ts'
import type { Places } from '../protect/places.ts'
import { type OverlayLaunch, overlayLaunch } from './overlay-launch.ts'
import type { OverlaySupport } from './overlay-support.ts'
import { createPrivateView } from './private-view.ts'
import { subMountOf } from './sub-mounts.ts'
import { forgetSupport, overlaySupport } from './support-file.ts'
import { createTransaction, type Transaction } from './transaction-folder.ts'

export type Prepared = { readonly transaction: Transaction; readonly launch: OverlayLaunch }

export type Transactions = {
  /** Tries it at the first call. */
  views(): Promise<PrivateViews>
  /** What `views` found, for a person. */
  words(): string
  /** @throws Error when the folder cannot be made, or `views` has found no support before */
  prepare(): Prepared
  view(transaction: Transaction): PrivateView
  /** Tries again at the next call of `views`, after a command could not be started. */
  forget(): void
}

type Making = { readonly places: Places; readonly bubblewrap: string; readonly libc: Libc }

export function createTransactions({ places, bubblewrap, libc }: Making): Transactions {
  const { workspace } = places
  const state: { trial?: Promise<OverlaySupport>; support?: OverlaySupport } = {}
  const cacheName = sha256(workspace).slice(0, 16)
  return {
    async views() {
      const mount = subMountOf(workspace)
      if (mount !== undefined) return { ok: false, why: `another file system is mounted inside the workspace, at ${JSON.stringify(mount)}` }
      state.trial ??= overlaySupport({ places, bubblewrap, libc })
      state.support = await state.trial
      return state.support.ok ? { ok: true } : state.support
    },
    words() {
      if (state.support === undefined) return 'not tried yet'
      return state.support.ok ? 'commands can have them' : `NOT possible, so commands write to it directly: ${state.support.why}`
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
    forget() {
      forgetSupport(places)
      state.trial = undefined
    },
  }
}
