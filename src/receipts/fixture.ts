/** Creates a home with receipts for tests and benchmarks. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sha256 } from '../kit/sha256.ts'
import type { AppendReceipts, Checkpoint, ReceiptDraft, ReceiptPaths } from './contract.ts'
import { readKey } from './key.ts'
import { createReceiptLog } from './ledger.ts'

export function draft(number: number, own: Partial<ReceiptDraft> = {}): ReceiptDraft {
  const hash = (text: string) => sha256(text)
  return {
    at: 1_778_594_400_000 + number * 1000,
    conversationId: 'conversation-1',
    tool: 'file_read',
    argsHash: hash(`args ${number}`),
    resultHash: hash(`result ${number}`),
    status: 'allowed',
    risk: 'low',
    ...own,
  }
}

export type Home = {
  readonly folder: string
  readonly paths: ReceiptPaths
  readonly append: AppendReceipts
  /** Appends one by one and stores the checkpoint, as the database does. */
  fill(count: number, own?: (number: number) => Partial<ReceiptDraft>): Checkpoint
  key(): Uint8Array
  log(): string
  setLog(text: string | Uint8Array): void
  remove(): void
}

export function pathsIn(folder: string): ReceiptPaths {
  return { log: join(folder, 'tool_receipts.log'), head: join(folder, 'receipts.head'), key: join(folder, 'receipt.key') }
}

export function createHome(folder = mkdtempSync(join(tmpdir(), 'braidclaw-receipts-')), keyless = false): Home {
  const paths = { ...pathsIn(folder), keyless }
  const append = createReceiptLog({ paths })
  const state: { checkpoint?: Checkpoint } = {}
  return {
    folder,
    paths,
    append,
    fill(count, own = () => ({})) {
      for (let number = 0; number < count; number += 1)
        state.checkpoint = mustAppend(append, [draft(number, own(number))], state.checkpoint)
      return required(state.checkpoint)
    },
    key() {
      const read = readKey(paths.key)
      if (!read.ok) throw new Error(read.failure.message)
      return read.key
    },
    log: () => readFileSync(paths.log, 'utf8'),
    setLog: (text) => writeFileSync(paths.log, text),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

export function mustAppend(append: AppendReceipts, drafts: readonly ReceiptDraft[], checkpoint: Checkpoint | undefined): Checkpoint {
  const appended = append(drafts, checkpoint)
  if (!appended.ok) throw new Error(appended.failure.message)
  return required(appended.checkpoint)
}

export function required<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('expected a value')
  return value
}
