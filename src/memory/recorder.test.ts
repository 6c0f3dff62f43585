import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import type { RecordEntry } from '../runtime/port.ts'
import {
  acting,
  callOf,
  countingReceipts,
  createMemoryStage,
  finish,
  fullReceipts,
  type MemoryStage,
  receiptsBy,
  refusing,
  runOf,
  started,
} from './fixture.ts'
import { attempts } from './journal/attempts.ts'
import { createRecorder, createRecordWriter, type ReceiptPort, RecordFailure } from './record-writer.ts'

let memoryStage: MemoryStage
let counted: ReturnType<typeof countingReceipts>
const disk = { full: false }
beforeEach(() => {
  memoryStage = createMemoryStage()
  counted = countingReceipts()
  disk.full = false
})
afterEach(() => memoryStage.remove())

function recorder() {
  const { memory, clock } = memoryStage
  const receipts: ReceiptPort = {
    ...counted.port,
    begin: (...known) => (disk.full ? receiptsBy(fullReceipts) : counted.port).begin(...known),
  }
  const writer = createRecordWriter({ memory, receipts, log: () => {}, now: () => clock.now++, redact: (event) => event })
  return createRecorder(writer, memory)
}

const begins = (id: string): RecordEntry => ({ kind: 'intent', act: acting(callOf(id)) })
const result = (id: string): RecordEntry => ({
  kind: 'external',
  event: { type: 'tool.done', id, outcome: { status: 'allowed', output: 'fine' } },
})
const refusal = (id: string): RecordEntry => ({ kind: 'denied', deny: refusing(callOf(id)) })

test('the batches of several runs are one append to the receipts, and each hears of its own', async () => {
  const { commit } = recorder()
  await Promise.all([1, 2, 3].map((number) => commit(runOf(number), [begins('a')])))
  const committed = await Promise.all([1, 2, 3].map((number) => commit(runOf(number), [result('a'), refusal('b')])))
  expect(counted.appends).toEqual([6])
  expect(committed.map(({ receipts }) => [...receipts])).toEqual(
    [1, 3, 5].map((first) => [
      ['a', `receipt-${first}`],
      ['b', `receipt-${first + 1}`],
    ]),
  )
  expect(memoryStage.memory.checkpoint.get()?.count).toBe(6)
})

test('a batch that cannot be kept fails alone: none of its rows and receipts stay, the others lose nothing', async () => {
  const { commit } = recorder()
  await commit(runOf(1), [begins('a')])
  const results = await Promise.allSettled([
    commit(runOf(1), [result('a')]),
    commit(runOf(2), [{ kind: 'external', event: started('hi') }, refusal('b'), result('never begun')]),
    commit(runOf(3), [refusal('c')]),
  ])
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(results[1]).toMatchObject({ reason: { code: 'no_intent' } })
  expect([counted.appends, counted.drafts.map(({ status }) => status)]).toEqual([[2], ['allowed', 'denied']])
  expect(memoryStage.memory.journal.events('run-2')).toEqual([])
  expect([...attempts(memoryStage.memory.store)].map(({ receiptId }) => receiptId)).toEqual(['receipt-1', 'receipt-2'])
})

test('a disk that is full fails them all, and nothing of any is kept', async () => {
  const { commit } = recorder()
  await commit(runOf(1), [begins('a')])
  disk.full = true
  const results = await Promise.allSettled([
    commit(runOf(1), [result('a')]),
    commit(runOf(2), [{ kind: 'external', event: started('hi') }]),
  ])
  for (const each of results) expect(each).toMatchObject({ status: 'rejected', reason: { code: 'full' } })
  expect(memoryStage.memory.journal.events('run-1').map(({ type }) => type)).toEqual(['act'])
  expect(memoryStage.memory.journal.events('run-2')).toEqual([])
  expect(memoryStage.memory.journal.openIntent('run-1', 'a')).toBeDefined()
})

test('one batch is kept whole or not at all', async () => {
  const { commit } = recorder()
  const batch: RecordEntry[] = [
    { kind: 'external', event: started('hi') },
    begins('a'),
    result('b'),
    { kind: 'finish', finish, digest: 'd' },
  ]
  expect(commit(runOf(1), batch)).rejects.toBeInstanceOf(RecordFailure)
  await Bun.sleep(5)
  expect(memoryStage.memory.journal.events('run-1')).toEqual([])
  expect(memoryStage.memory.journal.run('run-1')).toBeUndefined()
})

test('while another process writes a batch waits without holding up the event loop, and is kept once it may', async () => {
  const holder = new Database(memoryStage.path)
  holder.run('BEGIN IMMEDIATE')
  const { commit } = recorder()
  let kept = false
  const committed = commit(runOf(1), [begins('a')]).then(() => {
    kept = true
  })
  const ticks = { count: 0 }
  const timer = setInterval(() => ticks.count++, 10)
  await Bun.sleep(400)
  expect(kept).toBe(false)
  expect(ticks.count).toBeGreaterThan(2)
  holder.run('ROLLBACK')
  holder.close()
  await committed
  clearInterval(timer)
  expect(memoryStage.memory.journal.openIntent('run-1', 'a')).toBeDefined()
})

test('an act that is refused for want of a receipt does not stop those that only talk', async () => {
  const { commit } = recorder()
  disk.full = true
  const talk: RecordEntry = { kind: 'external', event: started('hi') }
  const results = await Promise.allSettled([commit(runOf(1), [begins('a')]), commit(runOf(2), [talk])])
  expect(results).toMatchObject([{ status: 'rejected', reason: { code: 'no_receipt' } }, { status: 'fulfilled' }])
  expect(memoryStage.memory.journal.events('run-1')).toEqual([])
  expect(memoryStage.memory.journal.events('run-2')).toHaveLength(1)
})
