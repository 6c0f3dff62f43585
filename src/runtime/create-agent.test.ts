import { expect, test } from 'bun:test'
import { collect, kinds, stage } from '../../test/support/agent.ts'
import type { Act } from './port.ts'

test('a call the gate forbids is never acted, is recorded as denied, and the model is told by which rule', async () => {
  const { agent, log, requests, acted } = stage({
    replies: [{ calls: [{ id: 'a' }] }, { text: 'I could not' }],
    verdicts: { a: { verdict: 'deny', rule: 'path.outside', reason: 'outside the workspace' } },
  })
  const events = await collect(agent, 'read it')
  expect(acted).toEqual([])
  expect(log).toEqual(['run.start', 'model.done', 'denied a by path.outside', 'model.done', 'finish denied'])
  expect(kinds(events)).toBe('init tool_use tool_result text done')
  expect(requests[1]?.messages.at(-1)).toEqual({
    role: 'tool',
    callId: 'a',
    name: 'tool',
    content: 'Denied by path.outside: outside the workspace',
    isError: true,
  })
  expect(agent.ending()?.code).toBe('denied')
})

test('the tool does not run before its approval: the gate opens first, the act comes only after the yes', async () => {
  const { agent, log, acted } = stage({
    replies: [{ calls: [{ id: 'a' }] }, { text: 'done' }],
    verdicts: { a: { verdict: 'ask', risk: 'medium' } },
  })
  await collect(agent, 'write', async (event) => {
    if (event.type !== 'approval_gate') return
    expect(acted).toEqual([])
    expect(await agent.approve(event.gateId, { allow: true, by: 'ann' })).toBeUndefined()
  })
  expect(acted).toEqual(['a'])
  expect(log).toEqual(['run.start', 'model.done', 'approval.decision', 'intent a', 'tool.done', 'model.done', 'finish answered'])
})

test('a no, an unknown gate and a second decision: only the first answer counts', async () => {
  const { agent, acted } = stage({ replies: [{ calls: [{ id: 'a' }] }, { text: 'ok' }], verdicts: { a: { verdict: 'ask' } } })
  await collect(agent, 'write', async (event) => {
    if (event.type !== 'approval_gate') return
    for (const id of ['nope', 'a', `${agent.runId()}/nope`, `${agent.runId()}a`])
      expect([agent.gate(id), await agent.approve(id, { allow: true, by: 'eve' })]).toEqual([undefined, 'approval'])
    expect(agent.gate(event.gateId)?.call.id).toBe('a')
    expect(await agent.approve(event.gateId, { allow: false, by: 'ann' })).toBeUndefined()
    expect(await agent.approve(event.gateId, { allow: true, by: 'eve' })).toBe('approval')
  })
  expect(acted).toEqual([])
  expect(agent.ending()?.code).toBe('denied')
})

test("a late yes to the first run's call does not reach the next run's call of the same id", async () => {
  const { agent, acted } = stage({
    replies: [{ calls: [{ id: 'a' }] }, { text: 'no' }, { calls: [{ id: 'a' }] }, { text: 'no' }],
    verdicts: { a: { verdict: 'ask' } },
  })
  const gates: string[] = []
  await collect(agent, 'first', async (event) => {
    if (event.type !== 'approval_gate') return
    gates.push(event.gateId)
    await agent.approve(event.gateId, { allow: false, by: 'ann' })
  })
  await collect(agent, 'second', async (event) => {
    if (event.type !== 'approval_gate') return
    gates.push(event.gateId)
    expect(await agent.approve(gates[0] ?? '', { allow: true, by: 'ann' })).toBe('approval')
    expect(await agent.approve(event.gateId, { allow: false, by: 'ann' })).toBeUndefined()
  })
  expect([new Set(gates).size, acted]).toEqual([2, []])
  expect(gates[1]).toBe(`${agent.runId()}/a`)
})

test('an approval that nobody answers expires, and the run says that one was needed', async () => {
  const { agent, acted } = stage({ replies: [{ calls: [{ id: 'a' }] }, { text: 'no' }], verdicts: { a: { verdict: 'ask' } }, ttlMs: 20 })
  await collect(agent, 'write')
  expect(acted).toEqual([])
  expect(agent.ending()?.code).toBe('approval_needed')
})

test('the act carries the very call and judgement that were proposed, and three parallel calls each run once', async () => {
  const acts: Parameters<Act>[0][] = []
  const { agent, requests } = stage({
    replies: [{ calls: [{ id: 'a', name: 'file_read', input: { path: 'x' } }, { id: 'b' }, { id: 'c' }] }, { text: 'done' }],
    verdicts: { a: { plan: 'plan of a', summary: 'read x', writes: ['/w/x'] } },
    act: async (act) => {
      acts.push(act)
      return { status: 'allowed', output: `did ${act.id}` }
    },
  })
  await collect(agent, 'go')
  expect(acts[0]).toEqual({
    type: 'act',
    id: 'a',
    call: { id: 'a', name: 'file_read', input: { path: 'x' } },
    judgement: { verdict: 'allow', risk: 'low', rule: 'test', reason: 'test', plan: 'plan of a', summary: 'read x', writes: ['/w/x'] },
  })
  expect(acts.map(({ id }) => id)).toEqual(['a', 'b', 'c'])
  expect(requests[1]?.messages.slice(2).map((message) => (message.role === 'tool' ? message.content : ''))).toEqual([
    'did a',
    'did b',
    'did c',
  ])
})

test('two writers of one path take turns, and no more than the limit are in flight', async () => {
  const flight = { now: 0, most: 0, writers: 0, mostWriters: 0 }
  const { agent } = stage({
    replies: [{ calls: ['a', 'b', 'c', 'd', 'e'].map((id) => ({ id })) }, { text: 'done' }],
    verdicts: { a: { writes: ['/w/x'] }, b: { writes: ['/w/x'] } },
    limits: { maxParallel: 3 },
    act: async ({ id }) => {
      const writer = id === 'a' || id === 'b' ? 1 : 0
      flight.now++
      flight.writers += writer
      flight.most = Math.max(flight.most, flight.now)
      flight.mostWriters = Math.max(flight.mostWriters, flight.writers)
      await Bun.sleep(5)
      flight.now--
      flight.writers -= writer
      return { status: 'allowed', output: id }
    },
  })
  await collect(agent, 'go')
  expect(flight).toEqual({ now: 0, most: 3, writers: 0, mostWriters: 1 })
})

test('tools do not go round for ever: the reply after the last round is answered or refused, and the run ends', async () => {
  const { agent, acted, requests, log } = stage({ replies: [{ calls: [{ id: 'again' }] }], limits: { maxToolRounds: 2 } })
  const events = await collect(agent, 'loop')
  expect(acted.length).toBe(2)
  expect(requests.length).toBe(3)
  expect(new Set(acted).size).toBe(2)
  expect(agent.ending()?.code).toBe('limit')
  expect(log.at(-2)).toContain('by limits.max_tool_rounds')
  expect(kinds(events)).toEndWith('tool_result error done')
})

test('exactly as many rounds as the limit still answer', async () => {
  const { agent } = stage({
    replies: [{ calls: [{ id: 'a' }] }, { calls: [{ id: 'b' }] }, { text: 'both done' }],
    limits: { maxToolRounds: 2 },
  })
  const events = await collect(agent, 'go')
  expect(events.at(-1)).toEqual({ type: 'done', stopReason: 'end_turn', result: 'both done' })
})

test('a prompt is not asked again after its answer', async () => {
  const { agent, requests } = stage({ replies: [{ text: 'hello' }] })
  expect(kinds(await collect(agent, 'hi'))).toBe('init text done')
  expect(requests.length).toBe(1)
})

test('cancel during a model call aborts it and ends as cancelled; a second cancel changes nothing', async () => {
  const { agent, log } = stage({ replies: [{ hang: true }] })
  const run = collect(agent, 'hi')
  await Bun.sleep(5)
  agent.cancel()
  agent.cancel()
  const events = await run
  expect(events.at(-1)).toEqual({ type: 'done', stopReason: 'cancelled' })
  expect(log).toEqual(['run.start', 'cancel', 'model.fail', 'finish cancelled'])
})

test('cancel during tools: what has started is waited for, what has not is denied', async () => {
  const { agent, acted, log } = stage({
    replies: [{ calls: [{ id: 'a' }, { id: 'b' }] }],
    limits: { maxParallel: 1 },
    act: (_act, signal) =>
      new Promise((resolve) => signal.addEventListener('abort', () => resolve({ status: 'failed', output: '', error: 'cancelled' }))),
  })
  await collect(agent, 'go', async (event) => {
    if (event.type === 'tool_use' && event.toolCallId === 'b') setTimeout(() => agent.cancel(), 5)
  })
  expect(acted).toEqual(['a'])
  expect(log).toEqual(['run.start', 'model.done', 'intent a', 'cancel', 'denied b by cancel', 'tool.done', 'finish cancelled'])
})

test('an emergency stop ends the run in words', async () => {
  const { agent } = stage({ replies: [{ hang: true }] })
  const run = collect(agent, 'hi')
  await Bun.sleep(5)
  agent.stop('ESTOP was set')
  const events = await run
  expect(agent.ending()?.code).toBe('estop')
  expect(events.at(-2)).toMatchObject({ type: 'text', isPartial: false })
})

test('a consumer that breaks out cancels the run', async () => {
  const { agent, log } = stage({
    replies: [{ calls: [{ id: 'a' }] }],
    act: (_act, signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve({ status: 'failed', output: '' }))),
  })
  for await (const event of agent.run('go')) if (event.type === 'tool_use') break
  expect(agent.ending()?.code).toBe('cancelled')
  expect(log).toContain('finish cancelled')
})

test('a consumer that is slow to read slows the model down', async () => {
  const { agent, pulled } = stage({ replies: [{ pieces: 5000, text: 'x' }] })
  const run = agent.run('go')
  await run.next()
  await Bun.sleep(20)
  expect(pulled()).toBeLessThan(400)
  for await (const _ of run);
  expect(pulled()).toBe(5000)
})

test('a model that fails ends the run with its reason', async () => {
  const { agent } = stage({ replies: [{ fail: 'auth' }] })
  const events = await collect(agent, 'hi')
  expect(events.at(-2)).toEqual({ type: 'error', code: 'provider.auth', message: 'scripted auth', recoverable: false })
  expect(agent.ending()?.code).toBe('provider')
})

test('when the journal cannot be written nothing happens and the run says so', async () => {
  const { agent, acted } = stage({
    replies: [{ calls: [{ id: 'a' }] }],
    record: {
      intent: () => {
        throw new Error('disk full')
      },
    },
  })
  const events = await collect(agent, 'go')
  expect(acted).toEqual([])
  expect(events.at(-2)).toMatchObject({ type: 'error', message: 'disk full' })
  expect(agent.ending()?.code).toBe('error')
})

test('a run over its token budget stops before the next call', async () => {
  const { agent, requests } = stage({ replies: [{ calls: [{ id: 'a' }] }], limits: { maxTokens: 40 } })
  await collect(agent, 'go')
  expect(requests.length).toBe(2)
  expect(agent.ending()?.code).toBe('budget')
})

test('a run over its time ends with timeout and leaves nothing in flight', async () => {
  const { agent } = stage({ replies: [{ hang: true }], limits: { maxMs: 20 } })
  await collect(agent, 'go')
  expect(agent.ending()?.code).toBe('timeout')
})

test('a second run at the same time is refused, one after the other is fine', async () => {
  const { agent } = stage({ replies: [{ text: 'hello' }] })
  const first = agent.run('one')
  await first.next()
  expect(agent.run('two').next()).rejects.toThrow('a run is under way')
  for await (const _ of first);
  expect(kinds(await collect(agent, 'three'))).toBe('init text done')
})
