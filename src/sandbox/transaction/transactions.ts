/** Prepares the transactions of one sandbox: a view of the workspace for each command. */

import { join } from 'node:path'
import { sha256 } from '../../kit/sha256.ts'
import type { Log } from '../../runtime/port.ts'
import type { CacheOwner, PrivateView, PrivateViews, SpawnPlan } from '../contract.ts'
import type { Libc } from '../libc.ts'
import { isWithin, type Places } from '../protect/places.ts'
import { subMountOf } from '../verify.ts'
import { type CacheLayer, createCaches } from './cache-layer.ts'
import { bytePath, namesIn, removeTree } from './layer-files.ts'
import { forgetSupport, type OverlayLaunch, type OverlaySupport, overlayLaunch, overlaySupport, overlayTakes } from './overlay-support.ts'
import { createPrivateView } from './read-changes.ts'
import { createTransaction, type Transaction } from './transaction-folder.ts'

export type Prepared = {
  readonly transaction: Transaction
  readonly launch: OverlayLaunch
  /** Call it right before the command starts. */
  begin(): void
  /** Call it when the command has ended. */
  view(): PrivateView
}

export type Transactions = {
  /** Tries an overlay at the first call. */
  views(): Promise<PrivateViews>
  /** True when `views` has found that they work. */
  isReady(): boolean
  /** True when `views` found a stored result. */
  isProven(): boolean
  /** Tells whether earlier commands left caches that only a view shows. */
  hasCaches(owner: CacheOwner | undefined): boolean
  /** Tells whether a view can cover this folder outside the workspace, too; a trial finds out. Never rejects. */
  takes(folder: string): Promise<boolean>
  /** Describes the result of `views` for a person. */
  words(): string
  /** @throws Error when the folder cannot be made, or `views` has found no support before */
  prepare(options: {
    readonly readOnly: boolean
    readonly caches: CacheOwner | undefined
    readonly outside?: SpawnPlan['outside']
  }): Prepared
  /** Tries again at the next call of `views`, after a command could not be started. */
  forget(): void
}

type TransactionsOptions = { readonly places: Places; readonly bubblewrap: string; readonly libc: Libc; readonly log: Log }

export function createTransactions({ places, bubblewrap, libc, log }: TransactionsOptions): Transactions {
  const { workspace } = places
  const state: {
    trial?: ReturnType<typeof overlaySupport> | undefined
    support?: OverlaySupport
    stored?: boolean
    takes?: { readonly folder: string; readonly result: Promise<boolean> } | undefined
    caches?: ((owner?: CacheOwner) => CacheLayer) | undefined
  } = {}
  const cacheOf = ({ caches }: { readonly caches: string }, owner: CacheOwner | undefined) => {
    const name = sha256(workspace).slice(0, 16)
    // An earlier version kept one layer of this name, which held what was dropped too.
    if (state.caches === undefined) removeTree(join(caches, name))
    state.caches ??= createCaches({ folder: join(caches, `${name}-2`), workspace, libc })
    return state.caches(owner)
  }
  return {
    async views() {
      const mount = subMountOf(workspace)
      if (mount !== undefined) return { ok: false, why: `another file system is mounted inside the workspace, at ${JSON.stringify(mount)}` }
      state.trial ??= overlaySupport({ places, bubblewrap, libc })
      const { support, stored } = await state.trial
      Object.assign(state, { support, stored })
      return support.ok ? { ok: true } : support
    },
    isReady: () => state.support?.ok === true,
    isProven: () => state.stored === true,
    hasCaches(owner) {
      const { support } = state
      return support?.ok === true && namesIn(libc, bytePath(cacheOf(support, owner).folder)).length > 0
    },
    async takes(folder) {
      const { ok } = await this.views()
      const { support } = state
      const apart = [places.stateHome, support?.ok === true ? support.base : places.stateHome]
      if (!ok || support === undefined || subMountOf(folder) !== undefined || apart.some((each) => isWithin(each, folder))) return false
      if (state.takes?.folder !== folder)
        state.takes = { folder, result: overlayTakes(folder, { places, bubblewrap, libc, support }).catch(() => false) }
      return state.takes.result
    },
    words() {
      if (state.support === undefined) return 'not tried yet'
      return state.support.ok ? 'commands can have them' : `NOT possible, so commands write to it directly: ${state.support.why}`
    },
    prepare({ readOnly, caches, outside }) {
      const { support } = state
      if (!support?.ok) throw new Error('private views of the workspace were not tried')
      const cache = cacheOf(support, caches)
      const transaction = createTransaction(support.base, { workspace, cache: cache.folder, outside })
      const { way, programs } = support
      return {
        transaction,
        launch: overlayLaunch({ way, folder: transaction.folder, workspace, programs, readOnly, outside: outside?.common }),
        begin() {
          cache.prune()
          transaction.begin()
        },
        view: () => createPrivateView({ transaction, workspace, outside: outside?.common, libc, cache, log }),
      }
    },
    forget() {
      forgetSupport(places)
      state.trial = undefined
      state.takes = undefined
      state.caches = undefined
    },
  }
}
