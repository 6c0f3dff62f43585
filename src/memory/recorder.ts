/** The one writer of a process: what all its runs ask for within one turn of the event loop is one transaction. */

import type { Committed, RecordEntry, Recorder, RunIdentity } from '../runtime/port.ts'
import { createCommitQueue } from './commit-queue.ts'
import { RecordFailure, type RecordWriter } from './record-writer.ts'

export function createRecorder({ write, transaction, separate, follow, abandon }: RecordWriter): Recorder {
  const endsGroup = (error: unknown) => !(error instanceof RecordFailure && error.code === 'no_intent')
  const queue = createCommitQueue({ transaction, separate, endsGroup })
  async function commit(run: RunIdentity, batch: readonly RecordEntry[]): Promise<Committed> {
    const committed = await queue
      .add(() => write(run, batch))
      .catch((error: unknown) => {
        abandon(run)
        throw error
      })
    follow(run)
    return committed
  }

  return { commit }
}
