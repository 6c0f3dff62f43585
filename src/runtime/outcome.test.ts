import { expect, test } from 'bun:test'
import { collect, kinds, type Script, stage } from '../../test/support/agent.ts'
import { always } from '../../test/support/own-threads.ts'
import type { ChangeReview } from './changes.ts'
import type { InternalEvent } from './event.ts'
import { applied, changesOf, dropOutcome, notApplied } from './outcome.ts'
import type { ActOutcome, ChangePorts } from './port.ts'
import type { AnyUserThread } from './threads/thread.ts'

const digest = 'd1'.repeat(32)
const review: ChangeReview = { digest, verdict: 'apply', rule: 'changes.plain', reason: 'harmless', summary: '1 new file: a', count: 1 }
const ask: ChangeReview = { ...review, verdict: 'ask', rule: 'changes.ask', reason: 'Makefile runs unasked' }
const deny: ChangeReview = { ...review, verdict: 'deny', rule: 'changes.git', reason: 'a hook' }

/** One call that runs on a view and changes what `review` says. */
function changing(review: ChangeReview, own: Partial<Script> = {}, ran: Partial<ActOutcome> = {}) {
  const port: string[] = []
  const drops: Extract<InternalEvent, { type: 'drop' }>[] = []
  const changes: ChangePorts = {
    async apply({ id, review }, _signal, ran) {
      port.push(`apply ${id}`)
      return applied(ran, review)
    },
    drop(event) {
      port.push(`drop ${event.id} by ${event.by}`)
      drops.push(event)
    },
  }
  const made = stage({
    replies: [{ calls: [{ id: 'a', name: 'shell' }] }, { text: 'over' }],
    act: async () => ({ status: 'allowed', output: 'made a', changes: review, ...ran }),
    changes,
    ...own,
  })
  return { ...made, port, drops }
}

const answering = (made: ReturnType<typeof changing>, allow: boolean, by = 'ann') =>
  collect(made.agent, 'go', async (event) => {
    if (event.type === 'approval_gate') await made.agent.approve(event.gateId, { allow, by })
  })
const result = (events: Awaited<ReturnType<typeof collect>>) => events.find(({ type }) => type === 'tool_result')

test('changes that the review denies are never applied: they are dropped by its rule, and the model is told what and why', async () => {
  const { agent, log, port, requests } = changing(deny)
  const events = await collect(agent, 'go')
  expect(port).toEqual(['drop a by changes.git'])
  expect(log).toEqual(['run.start', 'model.done', 'intent a', 'tool.changed', 'dropped a by changes.git', 'model.done', 'finish denied'])
  expect(requests[1]?.messages.at(-1)).toMatchObject({
    isError: true,
    content: `The command ran, but its changes were not applied: they were dropped by changes.git: a hook; the workspace is as it was before the command.
Not applied: 1 new file: a
What the command printed:
made a`,
  })
  expect(result(events)).toEqual({
    type: 'tool_result',
    toolCallId: 'a',
    status: 'failed',
    output: 'changes.git: a hook\nmade a',
    changes: 'dropped',
  })
  expect(agent.ending()?.code).toBe('denied')
})

test('changes that the review lets pass are applied without a question, and the result names their digest', async () => {
  const { agent, log, port } = changing(review)
  const events = await collect(agent, 'go')
  expect([port, agent.ending()?.code]).toEqual([['apply a'], 'answered'])
  expect(log).toEqual(['run.start', 'model.done', 'intent a', 'tool.changed', 'apply a', 'tool.done', 'model.done', 'finish answered'])
  expect(kinds(events)).toBe('init tool_use tool_result text done')
  expect(result(events)).toMatchObject({ status: 'completed', changes: digest })
})

test('changes that need a yes wait for it at a gate of their own, which shows the review', async () => {
  const made = changing(ask)
  const seen: unknown[] = []
  const events = await collect(made.agent, 'go', async (event) => {
    if (event.type !== 'approval_gate') return
    seen.push(made.port.length, event.changes, made.agent.gate(event.gateId)?.judgement.plan)
    expect(await made.agent.approve(event.gateId.replace('changes:', ''), { allow: true, by: 'eve' })).toBe('approval')
    await made.agent.approve(event.gateId, { allow: true, by: 'ann' })
  })
  expect(seen).toEqual([0, ask, digest])
  expect(made.port).toEqual(['apply a'])
  expect(kinds(events)).toBe('init tool_use approval_gate tool_result text done')
})

test('a no drops the changes, and the run counts as denied', async () => {
  const made = changing(ask)
  await answering(made, false)
  expect([made.port, made.agent.ending()?.code]).toEqual([['drop a by approval.ann'], 'denied'])
})

test('nobody to ask: the changes stay pending, and the run says that an approval was needed', async () => {
  const made = changing(ask)
  const events = await answering(made, false, 'nobody')
  expect([made.port, made.agent.ending()?.code]).toEqual([['drop a by approval.nobody'], 'approval_needed'])
  expect(result(events)).toMatchObject({ changes: 'pending' })
  expect(made.requests[1]?.messages.at(-1)).toMatchObject({ content: expect.stringContaining("they wait for a person's yes") })
})

test('an answer that does not come in time drops the changes', async () => {
  const made = changing(ask, { ttlMs: 20 })
  await collect(made.agent, 'go')
  expect([made.port, made.agent.ending()?.code]).toEqual([['drop a by approval.expiry'], 'approval_needed'])
})

test('a yes before the call ran is no yes to changes that ask nevertheless, and the first gate is closed by then', async () => {
  const made = changing(ask, { verdicts: { a: { verdict: 'ask' } } })
  const gates: string[] = []
  await collect(made.agent, 'go', async (event) => {
    if (event.type !== 'approval_gate') return
    gates.push(event.gateId)
    if (gates.length === 2) expect(await made.agent.approve(gates[0] ?? '', { allow: true, by: 'late' })).toBe('approval')
    await made.agent.approve(event.gateId, { allow: gates.length === 1, by: 'ann' })
  })
  expect(gates).toEqual([`${made.agent.runId()}/a`, `changes:${made.agent.runId()}/a`])
  expect(made.port).toEqual(['drop a by approval.ann'])
})

test.each(['cancel', 'stop'] as const)('%s while the question is open: the changes are dropped, nothing is applied', async (how) => {
  const made = changing(ask)
  await collect(made.agent, 'go', (event) => {
    if (event.type === 'approval_gate') made.agent[how]('now')
  })
  expect(made.port).toEqual([`drop a by ${how === 'stop' ? 'estop' : 'cancel'}`])
  expect(made.agent.ending()?.stop).toBe('cancelled')
})

test('a stop that comes while the application is being recorded counts: nothing is applied', async () => {
  const held = Promise.withResolvers<void>()
  const made = changing(review, { commit: (batch) => (batch.some(({ kind }) => kind === 'apply') ? held.promise : Promise.resolve()) })
  const running = collect(made.agent, 'go')
  await Bun.sleep(20)
  made.agent.cancel()
  held.resolve()
  const events = await running
  expect(made.port).toEqual(['drop a by runtime'])
  expect(result(events)).toMatchObject({ status: 'failed', changes: 'dropped' })
})

test('changes whose approval cannot be used are dropped, not applied', async () => {
  const made = changing(ask, { questions: { use: (what) => (what === 'apply' ? 'approval "x" is used' : undefined) } })
  const events = await answering(made, true)
  expect(made.port).toEqual(['drop a by runtime'])
  expect(JSON.stringify(result(events))).toContain('approval.unusable: approval \\"x\\" is used')
  expect(made.agent.ending()?.code).toBe('denied')
})

test('a command that failed has its changes applied, and stays a failure', async () => {
  const made = changing(review, {}, { status: 'failed', error: 'exit code 1' })
  expect(result(await collect(made.agent, 'go'))).toMatchObject({ status: 'failed', changes: digest })
  expect(made.port).toEqual(['apply a'])
})

test('a call that changed nothing ends at once', async () => {
  const { agent, log } = stage({
    replies: [{ calls: [{ id: 'a' }] }, { text: 'over' }],
    act: async () => ({ status: 'allowed', output: '', metadata: { changes: 'none' } }),
  })
  expect(result(await collect(agent, 'go'))).toMatchObject({ changes: 'none' })
  expect(log).toEqual(['run.start', 'model.done', 'intent a', 'tool.done', 'model.done', 'finish answered'])
})

test('while the changes of one call wait, the slot stays taken, and the other call runs after them', async () => {
  const made = changing(ask, {
    replies: [{ calls: [{ id: 'a' }, { id: 'b' }] }, { text: 'over' }],
    limits: { maxParallel: 1 },
    act: async ({ id }) => ({ status: 'allowed', output: '', ...(id === 'a' ? { changes: ask } : {}) }),
  })
  await collect(made.agent, 'go', async (event) => {
    if (event.type !== 'approval_gate') return
    expect(made.acted).toEqual(['a'])
    await made.agent.approve(event.gateId, { allow: false, by: 'ann' })
  })
  expect(made.acted).toEqual(['a', 'b'])
})

test('what became of changes is read only from what the runtime wrote', () => {
  expect([undefined, {}, { changes: 'all' }, { changes: 5 }, { changes: 'D1'.repeat(32) }].map(changesOf)).toEqual(Array(5).fill(undefined))
  expect(['none', 'direct', 'dropped', 'pending', digest].map((changes) => changesOf({ changes }))).toHaveLength(5)
  const ran = { status: 'failed', output: 'o', error: 'exit code 1', metadata: { sandbox: 'bubblewrap' } } as const
  expect(applied(ran, review)).toEqual({ ...ran, metadata: { sandbox: 'bubblewrap', changes: digest } })
  expect(notApplied(ran, 'failed', 'a was changed by another program')).toEqual({
    status: 'failed',
    output: 'o',
    error: 'the command ran, but its changes were not applied: a was changed by another program',
    metadata: { sandbox: 'bubblewrap', changes: 'dropped' },
  })
  expect(dropOutcome({ by: 'approval.ann', reason: 'no', outcome: ran })).toMatchObject({ status: 'denied', error: 'approval.ann: no' })
})

test.each([
  ['with a reason: they are dropped, and the model reads it', 'by hand only', 'by hand only'],
  ['without one: the run stalls, and they are dropped', undefined, 'it may not run'],
])('a developer blocks the application of changes %s', async (_, reason, told) => {
  const thread: AnyUserThread = {
    name: 'no-changes',
    init: null,
    bid: () => ({ block: [{ type: 'apply', match: ({ review }) => review.summary.includes('new file'), ...(reason ? { reason } : {}) }] }),
    next: (state) => state,
  }
  const made = changing(review, { threads: [thread] })
  await collect(made.agent, 'go')
  expect(made.drops).toHaveLength(1)
  expect(made.drops[0]?.reason).toContain(told)
  expect(made.acted).toEqual(['a'])
})

test('a developer who blocks act with a reason does not drop what a call changed that ran before', async () => {
  const thread: AnyUserThread = {
    name: 'late',
    init: false,
    bid: (late) => ({ wait: [{ type: 'act' }], block: late ? [{ type: 'act', reason: 'no more' }] : [] }),
    next: () => true,
  }
  const made = changing(ask, { threads: [thread] })
  await answering(made, true)
  expect(made.port).toEqual(['apply a'])
})

test('a developer who blocks the report of changes fails, and the run ends', async () => {
  const made = changing(review, { threads: [always('deaf', { block: [{ type: 'tool.changed' }] })] })
  await collect(made.agent, 'go')
  expect(made.agent.ending()?.message).toContain('"user/deaf" blocks tool.changed')
  expect(made.port).toEqual([expect.stringContaining('drop a by')])
})
