/** The one writer of a process: what all its runs ask for within one turn of the event loop is one transaction. */

import type { Recorder } from '../runtime/port.ts'
import { createCommitQueue } from './commit-queue.ts'
import { RecordFailure, type RecordWriter } from './record-writer.ts'
import type { LockWait } from './write-lock.ts'

/** @param lockWait how to wait for other processes; the event loop goes on meanwhile */
export function createRecorder({ write, transaction, separate }: RecordWriter, lockWait: () => LockWait): Recorder {
  const endsGroup = (error: unknown) => !(error instanceof RecordFailure && error.code === 'no_intent')
  const isLocked = (error: unknown) => error instanceof RecordFailure && error.code === 'locked'
  const queue = createCommitQueue({ transaction: (body) => transaction(body, 'briefly'), separate, endsGroup, isLocked, lockWait })
  return { commit: (run, batch) => queue.add(() => write(run, batch)) }
}
