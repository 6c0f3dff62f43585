import { expect, test } from 'bun:test'
import { collect, type Reply, type Script, stage } from '../../../../test/support/agent.ts'
import { createEngine } from '../../../kernel/engine.ts'
import type { Judgement, RunEvent } from '../../event.ts'
import { program } from '../../program.ts'
import { repetition } from './repetition.ts'

type One = { readonly tool: string; readonly input?: Record<string, string>; readonly says?: string; readonly as?: Partial<Judgement> }

/** Replies with one call per round while calls are left, then with an answer. */
async function run(ones: readonly One[], limits: Script['limits'] = { maxToolRounds: 100, maxSameResults: 3 }) {
  const id = (at: number) => `c${at}`
  const replies: Reply[] = ones.map(({ tool, input = {} }, at) => ({ calls: [{ id: id(at), name: tool, input }] }))
  const said = new Map(ones.map((one, at) => [id(at), one]))
  const { agent, acted, log } = stage({
    replies: [...replies, { text: 'done' }],
    limits,
    verdicts: Object.fromEntries(ones.map(({ as = {} }, at) => [id(at), as])),
    act: async (act) => ({ status: 'allowed', output: said.get(act.id)?.says ?? 'same' }),
  })
  await collect(agent, 'go')
  return { ending: agent.ending(), acted, log }
}

const look: One = { tool: 'look', input: { path: 'a', line: '1' } }
const changing = { risk: 'medium' } as const
const forbidden = { verdict: 'deny', risk: 'high', rule: 'path.forbidden', reason: 'not there' } as const

test('the same call with the same result ends the run the third time, by a limit that names the call and the setting', async () => {
  const { ending, acted } = await run([look, look, look, look])
  expect(acted).toEqual(['c0', 'c1', 'c2'])
  expect(ending).toMatchObject({ stop: 'error', code: 'limit' })
  expect(ending?.message).toBe(
    'the model repeats itself: the same call gave the same result 3 times, and nothing new was changed in between (look); if that is wanted, raise limits.max_same_results',
  )
})

test('the order of the arguments does not matter; another tool, other arguments or another result are not the same', async () => {
  const turned: One = { tool: 'look', input: { line: '1', path: 'a' } }
  expect((await run([look, turned, look])).ending?.code).toBe('limit')
  const others: One[] = [
    { tool: 'peek', input: { path: 'a', line: '1' } },
    { tool: 'look', input: { path: 'b' } },
    { ...look, says: 'other' },
  ]
  expect((await run([look, ...others, look, ...others])).ending?.code).toBe('answered')
})

test('what only reads in between, and other results of the same call, reset nothing', async () => {
  const poll = (says: string): One => ({ ...look, says })
  expect((await run([poll('20 %'), poll('40 %'), poll('60 %'), poll('80 %')])).ending?.code).toBe('answered')
  expect((await run([look, { tool: 'peek' }, look, poll('other'), look])).ending?.code).toBe('limit')
})

test('a new change in between is work, not a circle: the same tests after each edit', async () => {
  const edit = (text: string): One => ({ tool: 'edit', input: { text }, as: changing })
  const check: One = { tool: 'shell', input: { command: 'tsc' }, as: changing }
  expect((await run([check, edit('1'), check, edit('2'), check, edit('3'), check, edit('4'), check])).ending?.code).toBe('answered')
  expect((await run([check, check, check])).ending?.code).toBe('limit')
})

test('the same two changes in turn are a circle', async () => {
  const [there, back]: One[] = [
    { tool: 'edit', input: { old: 'a', new: 'b' }, as: changing },
    { tool: 'edit', input: { old: 'b', new: 'a' }, as: changing },
  ]
  if (!there || !back) throw new Error('two edits')
  const { ending, acted } = await run(Array.from({ length: 10 }, (_, at) => (at % 2 === 0 ? there : back)))
  expect([ending?.code, acted.length]).toEqual(['limit', 6])
})

test('a refused call counts, and is no change however risky it was', async () => {
  const refused: One = { tool: 'read', input: { path: '/etc/passwd' }, as: forbidden }
  const { ending, acted } = await run([look, refused, look, { ...refused, input: { path: '/etc/shadow' } }, look])
  expect([ending?.code, acted]).toEqual(['limit', ['c0', 'c2', 'c4']])
  expect((await run([refused, refused, refused])).ending).toMatchObject({ code: 'limit' })
})

test('without the setting a run has no such rule', async () => {
  const { ending } = await run([look, look, look, look], { maxToolRounds: 100 })
  expect(ending?.code).toBe('answered')
  const names = program({ maxToolRounds: 5, maxParallel: 4 }).map(({ name }) => name)
  expect(names).not.toContain('repetition')
})

test('once it has halted nothing begins, and what was asked for beside it is refused', async () => {
  const twice = [look, look].map(({ tool, input = {} }, at) => ({ id: `x${at}`, name: tool, input }))
  const { agent, acted, log } = stage({
    replies: [{ calls: [...twice, { id: 'x2', name: 'later' }] }],
    limits: { maxToolRounds: 100, maxSameResults: 2, maxParallel: 1 },
    act: async () => ({ status: 'allowed', output: 'same' }),
  })
  await collect(agent, 'go')
  expect(acted).toEqual(['x0', 'x1'])
  expect(log.filter((line) => line.startsWith('denied'))).toEqual(['denied x2 by limit'])
  expect(agent.ending()?.code).toBe('limit')
})

test('what it remembers stays bounded, however long the run, and it is plain JSON', () => {
  const thread = repetition({ maxSameResults: 5 })
  const judgement: Judgement = { verdict: 'allow', risk: 'low', rule: 'r', reason: 'r', plan: 'p', summary: 's', writes: [] }
  const state = Array.from({ length: 2000 }, (_, at) => `id${at}`).reduce((before, id) => {
    const events: RunEvent[] = [
      { type: 'act', id, call: { id, name: 'look', input: { id } }, judgement },
      { type: 'tool.done', id, outcome: { status: 'allowed', output: id } },
    ]
    return events.reduce(thread.next, before)
  }, thread.init)
  expect(JSON.stringify(state).length).toBeLessThan(20_000)
  expect(state.running).toEqual([])
  expect(structuredClone(state)).toEqual(state)
})

test('a call that has no canonical form is refused before it runs, and does not break the run', () => {
  const input = { text: '\ud800' }
  const judgement: Judgement = { verdict: 'deny', risk: 'high', rule: 'r', reason: '\udfff', plan: 'p', summary: 's', writes: [] }
  const call = { id: 'a', name: 'look', input }
  const engine = createEngine<RunEvent>({ threads: program({ maxToolRounds: 9, maxParallel: 1, maxSameResults: 2 }) })
  engine.send({ type: 'run.start', prompt: 'go', mode: 'structured', at: 0, model: 'm' })
  engine.send({ type: 'model.done', parts: [], proposals: [{ call, judgement }], usage: { inputTokens: 0, outputTokens: 0 }, model: 'm' })
  expect(engine.superstep().selected.map(({ event }) => event.type)).toContain('deny')
})
