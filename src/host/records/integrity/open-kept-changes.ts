/** Opens the change sets that are kept, for a person who decides about them after their turn, and settles them after a crash. */

import type { Memory } from '../../../memory/memory.ts'
import type { RecordWriter } from '../../../memory/record-writer.ts'
import type { Fate } from '../../../memory/recovery/pending-changes.ts'
import type { SetState } from '../../../workspace/changes/contract.ts'
import type { ChangeStore } from '../../../workspace/changes/store.ts'
import type { ChangeDecision, Setup } from '../../api.ts'
import { realFolder } from '../../setup/workspace-folder.ts'
import { openChanges } from '../../transactions/open-changes.ts'
import { inRecordWords, recoverRecord } from './create-record.ts'

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
  await recoverRecord(setup, record, (runId, callId) => {
    const set = store.list().find(({ about }) => about.run === runId && about.call === callId)
    return set === undefined ? 'dropped' : fates[set.state]
  })
}

/** Does with a change set what the operator decided, and leaves a receipt of it. @throws FailureError before it, when there can be none */
export async function withReceipt<Done extends { readonly ok: boolean }>(
  record: RecordWriter,
  { tool, set, paths }: ChangeDecision,
  act: () => Promise<Done>,
): Promise<Done> {
  await record.prepare()
  inRecordWords(record.proveReceipts)
  const done = await act()
  if (!done.ok) return done
  const { about, count, review } = set
  const { run, call, conversation: conversationId } = about
  const input = { run, call, changes: count, ...(review && { digest: review.digest }), ...(paths && { paths: [...paths] }) }
  inRecordWords(() => record.recordAction({ conversationId, tool, input, risk: 'medium' }))
  return done
}
