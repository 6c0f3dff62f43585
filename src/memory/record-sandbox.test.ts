import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import type { ReceiptDraft } from '../receipts/contract.ts'
import type { ExternalEvent } from '../runtime/event.ts'
import { acting, callOf, createMemoryStage, type MemoryStage, receiptsBy, recordSteps, refusing, runOf } from './fixture.ts'

let memoryStage: MemoryStage
let drafts: ReceiptDraft[]
beforeEach(() => {
  memoryStage = createMemoryStage()
  drafts = []
})
afterEach(() => memoryStage.remove())

const allowed: ExternalEvent = { type: 'tool.done', id: 'a', outcome: { status: 'allowed', output: 'fine' } }

function recorder() {
  const receipts = receiptsBy((wanted) => {
    drafts.push(...wanted)
    return { ok: true, receiptIds: [], checkpoint: undefined, adopted: 0, tornBytes: 0 }
  })
  return recordSteps({ memory: memoryStage.memory, receipts, log() {}, now: () => memoryStage.clock.now++, redact: (event) => event })
}

test('a run without a sandbox says so in every receipt; another says what confined the children of the call', () => {
  const shell: ExternalEvent = {
    type: 'tool.done',
    id: 'b',
    outcome: { status: 'allowed', output: '', metadata: { sandbox: 'bubblewrap' } },
  }
  const forged: ExternalEvent = { type: 'tool.done', id: 'c', outcome: { status: 'allowed', output: '', metadata: { sandbox: 'jail' } } }
  const { intent, external, denied, recordAction } = recorder()
  for (const [first, how] of [
    [1, { sandbox: 'none' as const }],
    [4, {}],
  ] as const) {
    for (const [at, event] of [allowed, shell, forged].entries()) {
      const run = runOf(first + at, how)
      intent(run, acting(callOf(['a', 'b', 'c'][at] ?? '')))
      external(run, event)
    }
    denied(runOf(first, how), refusing(callOf('d')))
    recordAction({ conversationId: 'c', tool: 't', input: {}, risk: 'high', ...how })
  }
  expect(drafts.map(({ sandbox }) => sandbox)).toEqual([...Array(5).fill('none'), undefined, 'bubblewrap', undefined, undefined, undefined])
})

test('a call that a crash cut off is confined as it began, whoever puts it right', () => {
  recorder().intent(runOf(1, { sandbox: 'none' }), acting(callOf('a')))
  recorder().intent(runOf(2), acting(callOf('b')))
  using db = new Database(memoryStage.path)
  db.run(`UPDATE runs SET owner = '999999999@1-x'`)
  recorder().recover()
  expect(drafts.map(({ sandbox, error }) => [sandbox, error])).toEqual([
    ['none', 'interrupted: outcome unknown'],
    [undefined, 'interrupted: outcome unknown'],
  ])
})
