import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import type { ExternalEvent } from '../runtime/event.ts'
import { acting, callOf, createRecordStage, finish, fullReceipts, receiptsBy, recordFailure, replied, runOf, started } from './fixture.ts'

let stage: ReturnType<typeof createRecordStage>
beforeEach(() => {
  stage = createRecordStage()
})
afterEach(() => stage.memoryStage.remove())

const recorder: (typeof stage)['recorder'] = (own) => stage.recorder(own)
const run = runOf(1)
const allowed: ExternalEvent = { type: 'tool.done', id: 'a', outcome: { status: 'allowed', output: 'fine' } }

/** Assigns the runs so far to a process that no longer exists. */
function orphan(owner: string): void {
  const db = new Database(stage.memoryStage.path)
  db.run('UPDATE runs SET owner = ?', [owner])
  db.close()
}

test('recovery leaves the work of living processes alone', () => {
  const { external, intent, recover } = recorder()
  external(run, started('hi'))
  intent(run, acting(callOf('a')))
  expect(recover()).toEqual({ interrupted: [], closedRuns: [], adopted: 0, tornBytes: 0, undecided: [] })
  expect(stage.memoryStage.memory.journal.run('run-1')?.ended).toBeNull()
})

test('recovery gives the work of dead processes a result, a receipt and an end, once', () => {
  const { external, intent, recover } = recorder()
  external(run, started('hi'))
  external(
    run,
    replied([
      { type: 'call', ...callOf('a') },
      { type: 'call', ...callOf('b') },
    ]),
  )
  intent(run, acting(callOf('a')))
  intent(run, acting(callOf('b')))
  external(run, allowed)
  orphan(`${process.pid}@1-deadbeef`)
  expect(recover()).toEqual({
    interrupted: [{ runId: 'run-1', callId: 'b', tool: 'file_read', receipt: 'receipt-2' }],
    closedRuns: ['run-1'],
    adopted: 0,
    tornBytes: 0,
    undecided: [],
  })
  expect(stage.counted.drafts[1]).toMatchObject({ status: 'failed', error: 'interrupted: outcome unknown', tool: 'file_read' })
  expect(stage.memoryStage.memory.journal.run('run-1')).toMatchObject({ code: 'error', message: 'the process ended before the run did' })
  expect(stage.memoryStage.memory.context('conversation-1', 1000).messages.slice(-2)).toMatchObject([
    { role: 'tool', callId: 'b', content: 'Failed: interrupted: outcome unknown', isError: true },
    { role: 'user', content: '[BraidClaw: the turn above was interrupted: its process ended before it did]' },
  ])
  expect(recover()).toEqual({ interrupted: [], closedRuns: [], adopted: 0, tornBytes: 0, undecided: [] })
})

test('a run that ended while an act was open is settled too, and keeps its end', () => {
  const { intent, finished, recover } = recorder()
  intent(run, acting(callOf('a')))
  finished(run, finish, 'abc')
  orphan(`${process.pid}@1-deadbeef`)
  expect(recover()).toMatchObject({ interrupted: [{ callId: 'a' }], closedRuns: [] })
  expect(stage.memoryStage.memory.journal.run('run-1')).toMatchObject({ code: 'answered' })
})

test('if the receipts cannot be settled, recovery changes nothing and says why', () => {
  const { intent, recover } = recorder({ receipts: stage.counted.port })
  intent(run, acting(callOf('a')))
  orphan(`${process.pid}@1-deadbeef`)
  expect(recordFailure(() => recorder({ receipts: receiptsBy(fullReceipts) }).recover()).message).toEndWith('kept: the disk is full')
  expect(stage.memoryStage.memory.journal.run('run-1')?.ended).toBeNull()
  expect(recover().interrupted).toHaveLength(1)
})
