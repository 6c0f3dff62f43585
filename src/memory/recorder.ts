/** The one writer of a process: what all its runs ask for within one turn of the event loop is one transaction. */

import type { Recorder } from '../runtime/port.ts'
import { createCommitQueue } from './commit-queue.ts'
import { RecordFailure, type RecordWriter } from './record-writer.ts'

export function createRecorder({ write, transaction, separate }: RecordWriter): Recorder {
  const endsGroup = (error: unknown) => !(error instanceof RecordFailure && error.code === 'no_intent')
  const queue = createCommitQueue({ transaction, separate, endsGroup })
  return { commit: (run, batch) => queue.add(() => write(run, batch)) }
}
