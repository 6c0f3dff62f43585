/** Settles after a crash what commands had changed: finishes what was being applied, keeps what waits for a person, drops the rest. */

import type { Fate } from '../../../memory/journal/interrupted-runs.ts'
import type { RecordWriter } from '../../../memory/record-writer.ts'
import type { SetState } from '../../../workspace/changes/contract.ts'
import type { Setup } from '../../api.ts'
import { realFolder } from '../../setup/workspace-folder.ts'
import { openChanges } from '../../transactions/open-changes.ts'
import { recoverRecord } from './recovery.ts'

const fates: { readonly [State in SetState]: Fate | undefined } = {
  applied: 'applied',
  'partly undone': 'applied',
  undone: 'applied',
  pending: 'pending',
  unfinished: undefined,
  stuck: undefined,
}

/** @throws FailureError `integrity` when the record was altered */
export async function settleChanges(setup: Setup, record: RecordWriter): Promise<void> {
  const store = openChanges(setup, realFolder(setup.config.workspaceDir))
  const { orphans } = await store.recover()
  for (const id of orphans) await store.drop(id)
  recoverRecord(setup, record, (runId, callId) => {
    const set = store.list().find(({ about }) => about.run === runId && about.call === callId)
    return set === undefined ? 'dropped' : fates[set.state]
  })
}
