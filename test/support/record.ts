/** Memory and receipts put together over one folder, as the program does. */

import { join } from 'node:path'
import { type Memory, openMemory } from '../../src/memory/db.ts'
import { createRecorder } from '../../src/memory/recorder.ts'
import type { AppendReceipts, Checkpoint } from '../../src/receipts/draft.ts'
import { atRest } from '../../src/receipts/last.ts'
import { latestReceipts } from '../../src/receipts/latest.ts'
import { createReceiptLog, type ReceiptPaths } from '../../src/receipts/log.ts'

export function pathsIn(folder: string): ReceiptPaths & { readonly database: string } {
  return {
    log: join(folder, 'tool_receipts.log'),
    head: join(folder, 'receipts.head'),
    key: join(folder, 'receipt.key'),
    database: join(folder, 'memory.sqlite'),
  }
}

/** @param around the receipts log as the recorder sees it: a place to die, before or after an append */
export function openRecord(
  folder: string,
  around = (append: AppendReceipts): AppendReceipts => append,
): { memory: Memory; recorder: ReturnType<typeof createRecorder>; close: () => void } {
  const paths = pathsIn(folder)
  const opened = openMemory({ path: paths.database, log: () => {}, now: Date.now })
  if (!opened.ok) throw new Error(opened.failure.message)
  const { memory } = opened
  const receipts = {
    receipt: around(createReceiptLog({ paths })),
    atRest: (known: Checkpoint | undefined) => atRest(paths, known),
    receiptsAfter: (count: number) => latestReceipts(paths, count),
  }
  const recorder = createRecorder({ memory, ...receipts, log: () => {}, now: Date.now, redact: (event) => event })
  return { memory, recorder, close: memory.close }
}
