/** Opens the change sets that are kept, for a person who decides about them after their turn, and settles them after a crash. */

import type { Fate } from '../../../memory/journal/interrupted-runs.ts'
import type { Memory } from '../../../memory/memory.ts'
import type { RecordWriter } from '../../../memory/record-writer.ts'
import type { SetState } from '../../../workspace/changes/contract.ts'
import type { ChangeStore } from '../../../workspace/changes/store.ts'
import type { Setup } from '../../api.ts'
import { realFolder } from '../../setup/workspace-folder.ts'
import { openChanges } from '../../transactions/open-changes.ts'
import { recoverRecord } from './recovery.ts'

/** Lends the memory of the home for as long as it is used. */
export type LendMemory = <T>(use: (memory: Memory) => Promise<T>) => Promise<T>

/** Finishes first what a dead process began. Whatever is applied, undone or redone through it is judged by today's policy. */
export async function openKeptChanges(setup: Setup, lend: LendMemory): Promise<ChangeStore> {
  const store = openChanges(setup, realFolder(setup.config.workspaceDir), async (entering) => {
    const { admitLate } = await import('./other-policy.ts')
    return lend((memory) => admitLate(setup, memory)(entering))
  })
  await store.recover()
  return store
}

const fates: { readonly [State in SetState]: Fate | undefined } = {
  applied: 'applied',
  'partly undone': 'applied',
  undone: 'applied',
  pending: 'pending',
  unfinished: undefined,
  stuck: undefined,
}

/**
 * Settles after a crash what commands had changed: finishes what was being applied, keeps what waits for a person, drops the rest. @throws
 * FailureError `integrity` when the record was altered
 */
export async function settleChanges(setup: Setup, record: RecordWriter): Promise<void> {
  const store = openChanges(setup, realFolder(setup.config.workspaceDir))
  const { orphans } = await store.recover()
  for (const id of orphans) await store.drop(id)
  recoverRecord(setup, record, (runId, callId) => {
    const set = store.list().find(({ about }) => about.run === runId && about.call === callId)
    return set === undefined ? 'dropped' : fates[set.state]
  })
}
