import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import type { ExternalEvent } from '../runtime/event.ts'
import type { ReceiptDraft } from './checkpoint.ts'
import { acting, callOf, createDesk, type Desk, refusing, runOf } from './fixture.ts'
import { createRecorder, type RecorderOptions } from './recorder.ts'

let desk: Desk
let drafts: ReceiptDraft[]
beforeEach(() => {
  desk = createDesk()
  drafts = []
})
afterEach(() => desk.remove())

const run = runOf(1)
const allowed: ExternalEvent = { type: 'tool.done', id: 'a', outcome: { status: 'allowed', output: 'fine' } }

function recorder(own: Partial<RecorderOptions> = {}) {
  const receipt: RecorderOptions['receipt'] = (wanted) => {
    drafts.push(...wanted)
    return { ok: true, receiptIds: wanted.map((_, at) => `receipt-${drafts.length + at}`), checkpoint: undefined, adopted: 0, tornBytes: 0 }
  }
  return createRecorder({ memory: desk.memory, receipt, log() {}, now: () => desk.clock.now++, redact: (event) => event, ...own })
}

test('a program without a sandbox says so in every receipt; another says what confined the children of the call', () => {
  const shell: ExternalEvent = {
    type: 'tool.done',
    id: 'b',
    outcome: { status: 'allowed', output: '', metadata: { sandbox: 'bubblewrap' } },
  }
  const forged: ExternalEvent = { type: 'tool.done', id: 'c', outcome: { status: 'allowed', output: '', metadata: { sandbox: 'jail' } } }
  for (const options of [{ sandbox: 'none' as const }, {}]) {
    const { intent, external, denied, deed } = recorder(options)
    for (const [at, event] of [allowed, shell, forged].entries()) {
      intent(runOf(at + 1), acting(callOf(['a', 'b', 'c'][at] ?? '')))
      external(runOf(at + 1), event)
    }
    denied(run, refusing(callOf('d')))
    deed({ conversationId: 'c', tool: 't', input: {}, risk: 'high' })
  }
  expect(drafts.map(({ sandbox }) => sandbox)).toEqual([...Array(5).fill('none'), undefined, 'bubblewrap', undefined, undefined, undefined])
})

test('a call that a crash cut off is confined as it began, whoever puts it right', () => {
  recorder({ sandbox: 'none' }).intent(run, acting(callOf('a')))
  recorder().intent(runOf(2), acting(callOf('b')))
  using db = new Database(desk.path)
  db.run(`UPDATE runs SET owner = '999999999@1-x'`)
  recorder({ sandbox: 'none' }).recover()
  expect(drafts.map(({ sandbox, error }) => [sandbox, error])).toEqual([
    ['none', 'interrupted: outcome unknown'],
    [undefined, 'interrupted: outcome unknown'],
  ])
})
