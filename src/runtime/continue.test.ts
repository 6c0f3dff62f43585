import { describe, expect, test } from 'bun:test'
import { stage } from '../../test/support/agent.ts'
import { after } from '../../test/support/own-threads.ts'
import type { Continued, Judgement, Proposal } from './event.ts'

const judgement: Judgement = { verdict: 'allow', risk: 'low', rule: 'old', reason: 'old', plan: 'old', summary: 'x', writes: [] }
const proposal = (id: string, own: Partial<Judgement> = {}): Proposal => ({
  call: { id, name: 'tool', input: {} },
  judgement: { ...judgement, ...own },
})
const continued = (...proposals: Proposal[]): Continued => ({ run: 'run_0', asked: 'go', proposals })

/** Goes on with a run that made these calls; returns what happened in it. */
async function continueRun(continues: Continued, script: Partial<Parameters<typeof stage>[0]> = {}, note = '') {
  const staged = stage({ replies: [{ text: 'done' }], ...script })
  const events = []
  for await (const event of staged.agent.run(note, continues)) {
    events.push(event)
    if (event.type === 'approval_gate') await staged.agent.approve(event.gateId, { allow: true, by: 'ann' })
  }
  return { ...staged, events, roles: staged.requests.map(({ messages }) => messages.map(({ role }) => role).join(' ')) }
}

describe('a run that goes on', () => {
  test('makes the calls that have no result before it asks the model, and does not repeat the question', async () => {
    const { log, acted, roles } = await continueRun(continued(proposal('a'), proposal('b')))
    expect([acted, roles]).toEqual([['a', 'b'], ['tool tool']])
    expect(log).toEqual(['run.start', 'intent a', 'intent b', 'tool.done', 'tool.done', 'model.done', 'finish answered'])
  })

  test('asks the model again at once when no call is open', async () => {
    const { acted, roles, log } = await continueRun(continued())
    expect([acted, roles, log]).toEqual([[], [''], ['run.start', 'model.done', 'finish answered']])
  })

  test('tells the model its note after the results, so that no result loses its call', async () => {
    expect((await continueRun(continued(proposal('a')), {}, 'check first')).roles).toEqual(['tool user'])
  })

  test('judges its calls by the policy of now, and keeps a refusal of then', async () => {
    const now = await continueRun(continued(proposal('a')), { verdicts: { a: { verdict: 'deny', rule: 'stricter' } } })
    expect([now.acted, now.log.includes('denied a by stricter')]).toEqual([[], true])
    const then = await continueRun(continued(proposal('a', { verdict: 'deny', rule: 'redaction.secret' })))
    expect([then.acted, then.log.includes('denied a by redaction.secret')]).toEqual([[], true])
  })

  test('asks a person again, and uses one yes once', async () => {
    const { acted, events } = await continueRun(continued(proposal('a')), { verdicts: { a: { verdict: 'ask' } } })
    expect([acted, events.filter(({ type }) => type === 'approval_gate').length]).toEqual([['a'], 1])
  })

  test('renames a call of the model that repeats an id', async () => {
    const { acted } = await continueRun(continued(proposal('a')), { replies: [{ calls: [{ id: 'a' }] }, { text: 'done' }] })
    expect(acted).toEqual(['a', 'a~2'])
  })

  test('ends when it is cancelled before its calls began', async () => {
    const staged = stage({ replies: [{ text: 'done' }], verdicts: { a: { verdict: 'ask' } } })
    for await (const event of staged.agent.run('', continued(proposal('a')))) if (event.type === 'approval_gate') staged.agent.cancel()
    expect([staged.acted, staged.requests.length, staged.agent.ending()?.code]).toEqual([[], 0, 'cancelled'])
  })

  test("lets a developer's thread add a call only between its own calls and the model", async () => {
    const threads = [after('run.start', { request: [{ type: 'propose', id: 't', call: { name: 'tests', input: {} } }] })]
    const { acted } = await continueRun(continued(proposal('a')), { threads })
    expect(acted.slice(0, 2)).toEqual(['a', 't'])
  })
})
