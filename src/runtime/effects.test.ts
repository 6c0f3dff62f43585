import { expect, test } from 'bun:test'
import { collect, kinds, type Script, stage } from '../../test/support/agent.ts'

const asks: Script = { replies: [{ calls: [{ id: 'a' }] }, { text: 'over' }], verdicts: { a: { verdict: 'ask', risk: 'medium' } } }

test('an approved call whose approval cannot be used is refused, and not carried out', async () => {
  const { agent, acted, log } = stage({
    ...asks,
    questions: { use: () => 'approval "x" is used, and only an allowed one can be used, once' },
  })
  const events = await collect(agent, 'go', async (event) => {
    if (event.type === 'approval_gate') await agent.approve(event.gateId, { allow: true, by: 'ann' })
  })
  expect(acted).toEqual([])
  expect(log).toContain('intent a')
  expect(JSON.stringify(events)).toContain('approval.unusable: approval \\"x\\" is used')
  expect(agent.ending()?.code).toBe('denied')
})

test('a no from elsewhere stands, and the later yes of whoever was asked is rejected', async () => {
  const { agent, acted } = stage({ ...asks, questions: { answered: () => ({ allow: false, by: 'operator' }) } })
  const said: unknown[] = []
  await collect(agent, 'go', async (event) => {
    if (event.type === 'approval_gate') said.push(await agent.approve(event.gateId, { allow: true, by: 'ann' }))
  })
  expect([said, acted, agent.ending()?.code]).toEqual([['approval'], [], 'denied'])
})

test('a yes from elsewhere counts while nobody here says anything', async () => {
  const { agent, acted } = stage({ ...asks, questions: { answered: () => ({ allow: true, by: 'operator' }) } })
  expect(kinds(await collect(agent, 'go'))).toBe('init tool_use approval_gate tool_result text done')
  expect(acted).toEqual(['a'])
})

test('a yes from before is used without asking anybody', async () => {
  const { agent, acted } = stage({ ...asks, questions: { opened: () => ({ allow: true, by: 'operator' }) } })
  const open: unknown[] = []
  await collect(agent, 'go', async (event) => {
    if (event.type === 'approval_gate') open.push(agent.gate(event.gateId))
  })
  expect([open, acted]).toEqual([[undefined], ['a']])
})

test('a record that cannot be read ends the run instead of leaving it waiting', async () => {
  const { agent, acted } = stage({
    ...asks,
    questions: {
      answered: () => {
        throw new Error('disk gone')
      },
    },
  })
  await collect(agent, 'go')
  expect([acted, agent.ending()]).toEqual([[], { stop: 'error', code: 'error', message: 'disk gone' }])
})
