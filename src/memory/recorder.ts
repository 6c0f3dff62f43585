/** Writes for all runs of a process: the commits within one turn of the event loop share one transaction. */

import type { Committed, RecordEntry, Recorder, RunIdentity } from '../runtime/port.ts'
import { type CommitQueue, createCommitQueue } from './commit-queue.ts'
import { RecordFailure, type RecordWriter } from './record-writer.ts'
import type { LockWait } from './write-lock.ts'

/** `add` writes data that belongs to no run. */
export type OneWriter = Recorder & CommitQueue

/** `lockWait`: how to wait for other processes without blocking the event loop. `committed` is called after each batch is on disk. */
export type RecorderOptions = { readonly lockWait: () => LockWait; readonly committed?: () => void }

export function createRecorder(
  { write, transaction, separate, follow, abandon }: RecordWriter,
  { lockWait, committed: tell = () => {} }: RecorderOptions,
): OneWriter {
  const endsGroup = (error: unknown) => !(error instanceof RecordFailure && ['no_intent', 'no_receipt', 'superseded'].includes(error.code))
  const isLocked = (error: unknown) => error instanceof RecordFailure && error.code === 'locked'
  const queue = createCommitQueue({ transaction: (body) => transaction(body, 'briefly'), separate, endsGroup, isLocked, lockWait })
  async function commit(run: RunIdentity, batch: readonly RecordEntry[]): Promise<Committed> {
    const committed = await queue
      .add(() => write(run, batch))
      .catch((error: unknown) => {
        abandon(run)
        throw error
      })
    follow(run)
    tell()
    return committed
  }

  return { commit, add: queue.add }
}
