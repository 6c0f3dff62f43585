import { afterEach, beforeEach, expect, test } from 'bun:test'
import { gateIdOf } from '../runtime/gate-id.ts'
import { type ApprovalRequests, createApprovalRequests } from './approval-requests.ts'
import { callOf, createMemoryStage, judgement, type MemoryStage, noon, runOf } from './fixture.ts'

let memoryStage: MemoryStage
let questions: ApprovalRequests
beforeEach(() => {
  memoryStage = createMemoryStage()
  questions = createApprovalRequests(memoryStage.memory.approvals, (text) => text.replaceAll('hunter2', '***'))
})
afterEach(() => memoryStage.remove())

const call = callOf('call-1')
const ask = (run = 1, own = {}) =>
  questions.opened(runOf(run), { type: 'gate.open', id: 'call-1', call, judgement: { ...judgement, ...own } }, noon + 60_000)
const decide = (allow: boolean, by: string) =>
  questions.decided(runOf(1), { type: 'approval.decision', id: 'call-1', allow, by, plan: judgement.plan })
const use = (own = {}) => questions.use(gateIdOf('run-1', 'call-1'), { ...judgement, ...own }.plan)
const stateOf = (run = 1) => memoryStage.memory.approvals.get(gateIdOf(runOf(run).runId, 'call-1'))?.state

test('a call that was not asked about, denied, or judged otherwise meanwhile may not use an approval', () => {
  expect(use()).toContain('does not exist')
  ask()
  expect(use()).toContain('is open')
  decide(true, 'ann')
  expect(use({ plan: 'plan-2' })).toContain('another plan')
  expect(use()).toBeUndefined()
  expect(use()).toContain('is used')
})

test('when a yes and a no meet, the no stands', () => {
  ask()
  memoryStage.memory.approvals.decide({ id: gateIdOf(runOf(1).runId, 'call-1'), allow: true, by: 'operator' })
  decide(false, 'terminal')
  expect([stateOf(), use()]).toEqual(['denied', expect.stringContaining('is denied')])
})

test('a refusal closes the question, but not the one that says that nobody was there', () => {
  ask()
  const deny = (by: string) => questions.refused(gateIdOf('run-1', 'call-1'), { by, reason: 'why' })
  decide(false, 'nobody')
  deny('approval.nobody')
  expect(stateOf()).toBe('open')
  deny('cancel')
  expect(stateOf()).toBe('denied')
})

test('a yes is taken over by a later run only when the run it was given to has ended', () => {
  memoryStage.memory.journal.append({ run: runOf(1), kind: 'note', type: 'x', at: noon, body: {} })
  ask()
  memoryStage.memory.approvals.decide({ id: gateIdOf(runOf(1).runId, 'call-1'), allow: true, by: 'operator' })
  expect([ask(2), stateOf(1)]).toEqual([undefined, 'allowed'])
  memoryStage.memory.journal.end('run-1', { at: noon, code: 'approval_needed', message: '', digest: null })
  expect([ask(3), stateOf(1)]).toEqual([{ allow: true, by: 'operator', note: 'allowed as run-1/call-1' }, 'used'])
  expect(ask(4)).toBeUndefined()
})

test('secrets are kept out of what is stored', () => {
  ask(1, { summary: 'curl hunter2', reason: 'hunter2' })
  expect(memoryStage.memory.approvals.list()).toMatchObject([{ summary: 'curl ***', reason: '***' }])
})
