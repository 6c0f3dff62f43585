import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { acting, callOf, createRecordStage, finish, judgement, noon, replied, runOf, started } from '../fixture.ts'
import { estimateTokens } from './model-context.ts'

let stage: ReturnType<typeof createRecordStage>
beforeEach(() => {
  stage = createRecordStage()
})
afterEach(() => stage.memoryStage.remove())

const digest = 'd1'.repeat(32)
const review = { digest, verdict: 'ask', rule: 'changes.ask', reason: 'why', summary: '1 new file: a', count: 1 } as const
const changed = { id: 'a', call: callOf('a'), judgement, outcome: { status: 'allowed', output: 'made it' }, review } as const
const gateId = 'changes:run-1/a'

/** A run whose only call changed something, and nobody was there to be asked. */
function waiting(by = 'approval.nobody') {
  const steps = stage.recorder()
  const run = runOf(1)
  steps.external(run, started('make it'))
  steps.external(run, replied([{ type: 'call', ...changed.call }]))
  steps.intent(run, acting(changed.call))
  steps.external(run, { type: 'tool.changed', ...changed })
  const shown = { ...judgement, plan: digest, summary: review.summary }
  steps.gate(run, { type: 'gate.open', ...changed, judgement: shown, changes: review }, noon + 60_000)
  steps.dropped(run, { type: 'drop', ...changed, by, reason: 'no' })
  steps.finished(run, finish, '')
  return steps
}

function later(ms: number): void {
  stage.memoryStage.clock.now += ms
}

const context = () => stage.memoryStage.memory.context('conversation-1', 10_000)
const notes = () =>
  context().messages.flatMap((message, at) =>
    message.role === 'user' && message.content.startsWith('[BraidClaw') ? [[at, message.content]] : [],
  )

function nextTurn(number: number): void {
  later(10)
  const { external, finished } = stage.recorder()
  external(runOf(number), started(`question ${number}`))
  external(runOf(number), replied([{ type: 'text', text: 'answer' }]))
  finished(runOf(number), finish, '')
}

describe('the next turn carries one line', () => {
  test('for what was applied later, in its place among the turns, from then on', async () => {
    const { applyPending } = waiting()
    nextTurn(2)
    later(10)
    await applyPending(gateId, 'ann', async () => ({ ok: true }))
    const line = '[BraidClaw: since then ann allowed the changes of a (1 new file: a). They were applied to the workspace]'
    expect(notes()).toEqual([[context().messages.length - 1, line]])
    nextTurn(3)
    expect(notes()).toEqual([[context().messages.length - 3, line]])
    expect(context().estimatedTokens).toBe(estimateTokens(context().messages))
  })

  test('for what was dropped by a no, with its reason', () => {
    waiting()
    later(10)
    stage.memoryStage.memory.approvals.decide({ id: gateId, allow: false, by: 'ann', note: 'not on a Friday' })
    expect(notes()).toMatchObject([[3, expect.stringContaining('were dropped, not applied: ann: not on a Friday]')]])
  })

  test('for a yes that came too late, because what it was for could not be applied', async () => {
    const { applyPending } = waiting()
    await applyPending(gateId, 'ann', async () => ({ ok: false, message: 'the disk is gone', changes: 'dropped' }))
    expect(notes()).toMatchObject([[3, expect.stringContaining('not applied: ann: the disk is gone]')]])
  })

  test('for an answer that never came', () => {
    waiting()
    later(60_001)
    expect(notes()).toMatchObject([[3, expect.stringContaining('nobody answered in time]')]])
  })
})

test('nothing is added while they wait or are being applied, nor for changes whose fate the call itself has told', async () => {
  const { applyPending } = waiting()
  expect(notes()).toEqual([])
  await applyPending(gateId, 'ann', async () => {
    expect(notes()).toEqual([])
    return { ok: false, message: 'a was changed meanwhile', changes: 'pending' }
  })
  expect(notes()).toEqual([])
})

test('a no in the run itself needs no line', () => {
  waiting('approval.ann')
  later(100_000)
  expect(notes()).toEqual([])
})
