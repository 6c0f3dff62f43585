/** Opens the change sets that are kept, for a person who decides about them after their turn. */

import type { Memory } from '../../../memory/memory.ts'
import type { ChangeStore } from '../../../workspace/changes/store.ts'
import type { Setup } from '../../api.ts'
import { realFolder } from '../../setup/workspace-folder.ts'
import { openChanges } from '../../transactions/open-changes.ts'

/** Lends the memory of the home for as long as it is used. */
export type LendMemory = <T>(use: (memory: Memory) => Promise<T>) => Promise<T>

/** Finishes first what a dead process began. Whatever is applied, undone or redone through it is judged by today's policy. */
export async function openKeptChanges(setup: Setup, lend: LendMemory): Promise<ChangeStore> {
  const store = openChanges(setup, realFolder(setup.config.workspaceDir), async (entering) => {
    const { admitLate } = await import('./admit-late.ts')
    return lend((memory) => admitLate(setup, memory)(entering))
  })
  await store.recover()
  return store
}
