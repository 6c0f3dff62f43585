/** Opens memory and receipts together over one folder, as the program does. */

import { join } from 'node:path'
import { recordSteps } from '../../src/memory/fixture.ts'
import { type Memory, openMemory } from '../../src/memory/memory.ts'
import type { ReceiptPort } from '../../src/memory/record-writer.ts'
import type { OpenLedger, ReceiptPaths } from '../../src/receipts/contract.ts'
import { createSealer } from '../../src/receipts/key.ts'
import { createLedgers } from '../../src/receipts/ledger.ts'
import { latestReceipts } from '../../src/receipts/list-receipts.ts'
import { isConsistent } from '../../src/receipts/verify/log-end.ts'

export function pathsIn(folder: string): ReceiptPaths & { readonly database: string } {
  return {
    log: join(folder, 'tool_receipts.log'),
    head: join(folder, 'receipts.head'),
    key: join(folder, 'receipt.key'),
    database: join(folder, 'memory.sqlite'),
  }
}

/** Opens the memory of a home as the program does, which seals what it writes. */
export function withSealedMemory<T>(folder: string, use: (memory: Memory) => T): T {
  const paths = pathsIn(folder)
  const opened = openMemory({ path: join(folder, 'memory.sqlite'), log: () => {}, now: Date.now, seal: createSealer(paths) })
  if (!opened.ok) throw new Error(opened.failure.message)
  try {
    return use(opened.memory)
  } finally {
    opened.memory.close()
  }
}

/** @param around wraps the receipts log as the recorder sees it: a place to die, before or after an append */
export function openRecord(
  folder: string,
  around = (open: OpenLedger): OpenLedger => open,
): { memory: Memory; recorder: ReturnType<typeof recordSteps>; close: () => void } {
  const paths = pathsIn(folder)
  const opened = openMemory({ path: paths.database, log: () => {}, now: Date.now })
  if (!opened.ok) throw new Error(opened.failure.message)
  const { memory } = opened
  const receipts: ReceiptPort = {
    begin: around(createLedgers({ paths })),
    after: (count) => latestReceipts(paths, count),
    isConsistent: (known) => isConsistent(paths, known),
  }
  const recorder = recordSteps({ memory, receipts, log: () => {}, now: Date.now, redact: (event) => event })
  return { memory, recorder, close: memory.close }
}
