import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import type { ReceiptDraft } from '../../receipts/contract.ts'
import { clearConversations } from '../conversations/delete-conversations.ts'
import {
  type AppendReceipts,
  acting,
  callOf,
  createMemoryStage,
  finish,
  type MemoryStage,
  receiptsBy,
  recordSteps,
  runOf,
  started,
} from '../fixture.ts'

let memoryStage: MemoryStage
beforeEach(() => {
  memoryStage = createMemoryStage()
})
afterEach(() => memoryStage.remove())

/** Simulates that the process that wrote them was killed. */
function orphanAll(): void {
  const db = new Database(memoryStage.path)
  db.run('UPDATE runs SET owner = ?', [`${process.pid}@1-deadbeef`])
  db.close()
}

test('a dead run whose journal somebody broke does not keep the next start from its work', () => {
  const { memory, clock } = memoryStage
  const { external, intent, recover } = recordSteps({ memory, log: () => {}, now: () => clock.now++, redact: (event) => event })
  external(runOf(1), started('hi'))
  intent(runOf(1), acting(callOf('a')))
  orphanAll()
  const db = new Database(memoryStage.path)
  db.run(`UPDATE journal SET body = '{' WHERE type = 'run.start'`)
  db.close()
  expect(recover()).toMatchObject({ interrupted: [{ runId: 'run-1', callId: 'a' }], closedRuns: ['run-1'] })
  expect(memory.journal.alteredIn('run-1')).toMatchObject({ event: 1, seq: 1 })
})

test('of dead runs that were cleared nothing comes back but the receipts they owed', () => {
  const { memory, clock } = memoryStage
  const drafts: ReceiptDraft[] = []
  const receipt: AppendReceipts = (wanted) => {
    drafts.push(...wanted)
    return { ok: true, receiptIds: [], checkpoint: undefined, adopted: 0, tornBytes: 0 }
  }
  const { external, intent, finished, recover } = recordSteps({
    memory,
    receipts: receiptsBy(receipt),
    log: () => {},
    now: () => clock.now++,
    redact: (event) => event,
  })
  external(runOf(1), started('hi'))
  intent(runOf(1), acting(callOf('a')))
  intent(runOf(2), acting(callOf('b')))
  finished(runOf(2), finish, 'abc')
  external(runOf(3), started('owes nothing'))
  orphanAll()
  const { journal, conversations } = memory
  expect(clearConversations(memory, { yes: true })).toMatchObject({ underWay: 0 })
  expect(journal.runs({ limit: 9 }).map(({ runId }) => runId)).toEqual(['run-2', 'run-1'])

  const owed = ['run-1', 'run-2'].map((runId, at) => ({ runId, receipt: `receipt-${at + 1}` }))
  expect(recover()).toMatchObject({ interrupted: owed, closedRuns: [] })
  expect(drafts.map(({ error }) => error)).toEqual(Array(2).fill('interrupted: outcome unknown'))
  expect([journal.runs({ limit: 9 }), journal.unfinished(), conversations.list(), journal.events('run-1')]).toEqual([[], [], [], []])
})
