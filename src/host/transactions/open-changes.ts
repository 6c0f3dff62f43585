/** Opens the store of change sets of a home. */

import { join } from 'node:path'
import { isOfDeadOwner } from '../../sandbox/private-folder.ts'
import { keepCaches } from '../../sandbox/transaction/cache-layer.ts'
import type { Admit } from '../../workspace/changes/contract.ts'
import { type ChangeStore, openChangeStore } from '../../workspace/changes/store.ts'
import type { Setup } from '../api.ts'

/**
 * Opens no file. @param workspace an absolute path without symbolic links @param admit judges what is applied, undone or redone without an
 * admission of its own
 */
export function openChanges(
  { config, paths, log }: Pick<Setup, 'config' | 'paths' | 'log'>,
  workspace: string,
  admit?: Admit,
): ChangeStore {
  const { keepSets, keepMb, keepDays } = config.changes
  const folder = `${paths.home}/changes`
  const store = openChangeStore({
    folder,
    workspace,
    log,
    now: Date.now,
    limits: {
      keepSets,
      keepDays,
      keepBytes: keepMb * 1_000_000,
      isApart: (workspace) => /\/braidclaw\/wiggum\/wiggum_[^/]+\//.test(workspace),
    },
    isInUse: (id) => !isOfDeadOwner(id),
    ...(admit && { admit }),
  })
  return {
    ...store,
    /** The caches of a command are kept with its changes, whoever applies them. */
    async apply(set) {
      const done = await store.apply(set)
      if (done.ok)
        await keepCaches(join(folder, set.id), true).catch((error: unknown) => log('debug', 'caches were not kept', { why: String(error) }))
      return done
    },
  }
}
