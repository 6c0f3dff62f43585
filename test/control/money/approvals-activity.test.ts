import { expect, test } from 'bun:test'
import { expireApprovals, operationDigest } from '../../../src/control/plane/approvals.ts'
import { forEachEngine } from '../support/engines.ts'
import { codeOf, type MoneyPlane, moneyPlane, refusalOf, seedCaller } from '../support/money-plane.ts'
import { agentCaller, anna, draft } from '../support/task-plane.ts'

const asks = { event_type: 'approval_request', agent_id: 'a1', operation: 'Merge PR #42', reasoning: 'conflict', estimated_tokens: 8500 }
const completes = {
  event_type: 'task_completed',
  task_id: 'TASK-001',
  agent_id: 'a1',
  result: { status: 'success', output: 'ok', tokens_used: 420 },
}
const errs = {
  event_type: 'error',
  agent_id: 'a1',
  error_message: 'Vacuum failed: database locked',
  action_taken: 'Escalated',
  tokens_used: 1200,
}

async function planeWithRun(open: Parameters<Parameters<typeof forEachEngine>[1]>[0]) {
  const plane = await moneyPlane(await open())
  await plane.addAgent('a1')
  await plane.addAgent('b1')
  return { plane, run: await plane.startRun() }
}

const approve = (plane: MoneyPlane, decision: 'approve' | 'reject' | 'revise' = 'approve', note = '') =>
  plane.approvals.decide(anna, 'APPR-001', { decision, note })
const spent = async (plane: MoneyPlane) => (await plane.budget.get(anna)).spent_today

forEachEngine('approvals and activity', (open) => {
  test('nobody but an operator decides, nobody but the asker uses, and nobody reads another agent’s', async () => {
    const { plane, run } = await planeWithRun(open)
    await plane.activity(run.caller, asks)
    for (const caller of [run.caller, agentCaller('a1'), seedCaller])
      expect(await codeOf(plane.approvals.decide(caller, 'APPR-001', { decision: 'approve', note: '' }))).toBe('forbidden')
    for (const caller of [anna, seedCaller]) expect(await codeOf(plane.approvals.use(caller, 'APPR-001'))).toBe('forbidden')
    const query = { limit: 50 }
    expect(await codeOf(plane.approvals.get(agentCaller('b1'), 'APPR-001'))).toBe('forbidden')
    expect(await codeOf(plane.approvals.list(agentCaller('b1'), { ...query, agent_id: 'a1' }))).toBe('forbidden')
    expect((await plane.approvals.list(agentCaller('b1'), query)).approvals).toEqual([])
    expect((await plane.approvals.get(anna, 'APPR-001')).state).toBe('pending')
    expect(await codeOf(approve(plane).then(() => plane.approvals.decide(anna, 'APPR-999', { decision: 'approve', note: '' })))).toBe(
      'not_found',
    )
  })

  test('a task that asks waits without a lease and costs nothing; the decision and its wake are one', async () => {
    const { plane, run } = await planeWithRun(open)
    const reply = await plane.activity(run.caller, asks)
    expect(reply).toMatchObject({ ok: true, task_id: 'TASK-001', approval_id: 'APPR-001', escalation_task_id: null })
    expect(await plane.tasks.get(anna, 'TASK-001')).toMatchObject({ status: 'awaiting_approval', lease_until: null })
    expect((await plane.runs.get(anna, run.claim.run_id)).state).toBe('waiting')
    expect(await codeOf(plane.tasks.beat(run.caller, 'TASK-001'))).toBe('lease_lost')
    expect(await plane.claim('b1')).toBeUndefined()
    for (const caller of [seedCaller, agentCaller('a1')]) expect(await codeOf(plane.activity(caller, completes))).toBe('conflict')
    expect(await approve(plane, 'approve', 'go on')).toMatchObject({ state: 'approved', decided_by: 'operator anna', note: 'go on' })
    const again = await plane.claimRun()
    expect(again.claim.task.context).toEqual({ approvals: { 'APPR-001': { state: 'approved', operation: 'Merge PR #42', note: 'go on' } } })
    expect((await plane.types()).filter((type) => type.startsWith('approval.') || type === 'task.woken')).toEqual([
      'approval.requested',
      'approval.approved',
      'task.woken',
    ])
  })

  test('the second decision is refused with the first one', async () => {
    const { plane, run } = await planeWithRun(open)
    await plane.activity(run.caller, asks)
    const both = await Promise.all([codeOf(approve(plane, 'reject')), codeOf(approve(plane))])
    expect(both.sort()).toEqual(['already_decided', 'done'])
    const refused = await refusalOf(approve(plane))
    expect(refused.details.approval).toMatchObject({ approval_id: 'APPR-001', decided_by: 'operator anna' })
    expect((await plane.types()).filter((type) => type === 'task.woken')).toHaveLength(1)
  })

  test('an approval is used once, by a run of its task, for exactly what was asked', async () => {
    const { plane, run } = await planeWithRun(open)
    const details = { pr: 42, branch: 'main' }
    await plane.activity(run.caller, { ...asks, details })
    expect(await codeOf(plane.approvals.use(run.caller, 'APPR-001'))).toBe('lease_lost')
    await approve(plane)
    const again = await plane.claimRun('b1')
    const other = await plane.startRun('b1', { title: 'other' })
    const right = operationDigest(asks.operation, details)
    expect(await codeOf(plane.approvals.use(other.caller, 'APPR-001', right))).toBe('conflict')
    expect(await codeOf(plane.approvals.use(agentCaller('a1'), 'APPR-001', right))).toBe('conflict')
    expect(
      await codeOf(plane.approvals.use(again.caller, 'APPR-001', operationDigest(asks.operation, { ...details, branch: 'prod' }))),
    ).toBe('conflict')
    const codes = await Promise.all([1, 2, 3].map(() => codeOf(plane.approvals.use(again.caller, 'APPR-001', right))))
    expect(codes.sort()).toEqual(['conflict', 'conflict', 'done'])
    expect(await plane.approvals.get(anna, 'APPR-001')).toMatchObject({ state: 'used', digest: right, details })
  })

  test('what was rejected, revised, expired or never answered permits nothing, and the run reads why', async () => {
    const { plane, run } = await planeWithRun(open)
    await plane.activity(run.caller, asks)
    await approve(plane, 'revise', 'only the first commit')
    const second = await plane.claimRun()
    expect(second.claim.task.context).toMatchObject({ approvals: { 'APPR-001': { state: 'revise', note: 'only the first commit' } } })
    expect(await codeOf(plane.approvals.use(second.caller, 'APPR-001'))).toBe('conflict')
    expect((await plane.activity(second.caller, { ...asks, operation: 'Merge the first commit' })).approval_id).toBe('APPR-002')
    plane.clock.at += 24 * 3_600_000
    await expireApprovals(plane.context)
    expect(await plane.approvals.get(anna, 'APPR-002')).toMatchObject({ state: 'expired', note: 'nobody answered within 24 h' })
    const third = await plane.claimRun()
    expect(third.claim.task.context).toMatchObject({ approvals: { 'APPR-002': { state: 'expired' } } })
    expect(await codeOf(plane.approvals.use(third.caller, 'APPR-002'))).toBe('conflict')
  })

  test('a decision after the time has passed expires the question and wakes the task all the same', async () => {
    const { plane, run } = await planeWithRun(open)
    await plane.activity(run.caller, asks)
    plane.clock.at += 24 * 3_600_000 + 1
    expect((await refusalOf(approve(plane))).details.approval).toMatchObject({ state: 'expired' })
    expect((await plane.tasks.get(anna, 'TASK-001')).status).toBe('pending')
  })

  test('an approval that nobody used in time may not be used any more', async () => {
    const { plane, run } = await planeWithRun(open)
    await plane.activity(run.caller, asks)
    plane.clock.at += 23 * 3_600_000
    await approve(plane)
    plane.clock.at += 23 * 3_600_000
    const again = await plane.claimRun()
    await expireApprovals(plane.context)
    expect((await plane.approvals.get(anna, 'APPR-001')).state).toBe('approved')
    plane.clock.at += 3_600_000
    const last = await plane.claimRun()
    expect(again.claim.run_id).not.toBe(last.claim.run_id)
    expect(await codeOf(plane.approvals.use(last.caller, 'APPR-001'))).toBe('conflict')
    await expireApprovals(plane.context)
    expect(await plane.approvals.get(anna, 'APPR-001')).toMatchObject({ state: 'expired', decided_by: 'operator anna' })
  })

  test('without a run token a question belongs to its agent, and no task waits for it', async () => {
    const { plane } = await planeWithRun(open)
    expect(await plane.activity(agentCaller('a1'), asks)).toMatchObject({ task_id: null, approval_id: 'APPR-001' })
    expect(await codeOf(plane.activity(agentCaller('a1'), { ...asks, task_id: 'TASK-404' }))).toBe('not_found')
    await approve(plane)
    expect(await codeOf(plane.approvals.use(agentCaller('b1'), 'APPR-001'))).toBe('conflict')
    expect((await plane.approvals.use(agentCaller('a1'), 'APPR-001')).operation).toBe(asks.operation)
  })

  test('pages are newest first', async () => {
    const { plane } = await planeWithRun(open)
    for (const operation of ['1', '2', '3']) await plane.activity(seedCaller, { ...asks, operation })
    const first = await plane.approvals.list(anna, { limit: 2, state: 'pending' })
    expect([first.approvals.map((one) => one.operation), first.next]).toEqual([['3', '2'], 'APPR-002'])
    expect((await plane.approvals.list(anna, { limit: 2, after: 'APPR-002' })).next).toBeNull()
  })

  // Activity.

  test('nobody posts in the name of another agent, or for another task', async () => {
    const { plane, run } = await planeWithRun(open)
    await plane.tasks.create(anna, draft({ title: 'two' }))
    for (const post of [completes, asks, errs]) {
      expect(await codeOf(plane.activity(agentCaller('b1'), post))).toBe('forbidden')
      expect(await codeOf(plane.activity(run.caller, { ...post, task_id: 'TASK-002' }))).toBe('forbidden')
    }
    expect(await plane.rows('SELECT id FROM activity')).toEqual([])
  })

  test('an agent counts nothing on a task of another role, or that another one runs, and asks nothing about it', async () => {
    const { plane } = await planeWithRun(open)
    await plane.tasks.create(anna, draft({ role: 'db-admin', budget_tokens: 10 }))
    for (const post of [asks, errs])
      expect(await codeOf(plane.activity(agentCaller('a1'), { ...post, task_id: 'TASK-002' }))).toBe('forbidden')
    await plane.activity(agentCaller('b1'), { ...errs, agent_id: 'b1', task_id: 'TASK-001' })
    for (const id of ['TASK-001', 'TASK-002']) expect((await plane.tasks.get(anna, id)).tokens_used).toBe(0)
  })

  test('the shared secret completes nothing that a run holds', async () => {
    const { plane } = await planeWithRun(open)
    for (const caller of [seedCaller, agentCaller('a1'), anna]) expect(await codeOf(plane.activity(caller, completes))).toBe('lease_lost')
    expect((await plane.tasks.get(anna, 'TASK-001')).status).toBe('running')
    expect(await spent(plane)).toBe(0)
  })

  test('a run that lost its lease changes nothing with any post', async () => {
    const { plane, run } = await planeWithRun(open)
    plane.clock.at += 60_001
    const before = await plane.rows('SELECT status, version, tokens_used FROM tasks')
    for (const post of [completes, asks, errs]) expect(await codeOf(plane.activity(run.caller, post))).toBe('lease_lost')
    expect(await plane.rows('SELECT status, version, tokens_used FROM tasks')).toEqual(before)
    expect([await spent(plane), await plane.rows('SELECT id FROM approvals')]).toEqual([0, []])
  })

  test('a completion that is posted twice is answered as the first one, and counts once', async () => {
    const { plane, run } = await planeWithRun(open)
    const first = await plane.activity(run.caller, { ...completes, skill_executed: 'jail-status' })
    expect(first).toEqual({ ok: true, activity_id: 1, task_id: 'TASK-001', approval_id: null, escalation_task_id: null })
    expect(await plane.activity(run.caller, completes)).toEqual(first)
    expect(await plane.tasks.get(anna, 'TASK-001')).toMatchObject({ status: 'completed', tokens_used: 420, result: { output: 'ok' } })
    expect((await plane.runs.get(anna, 'RUN-001')).skill).toBe('jail-status')
    expect(await spent(plane)).toBe(420)
    expect(await plane.activity(seedCaller, { ...completes, skill_executed: 'jail-status' })).toEqual(first)
    expect(await codeOf(plane.activity(seedCaller, { ...completes, result: { status: 'success', tokens_used: 1 } }))).toBe('conflict')
    expect(await spent(plane)).toBe(420)
  })

  test('a client of the seed completes a task that nobody claimed, and its tokens count', async () => {
    const plane = await moneyPlane(await open())
    await plane.tasks.create(anna, draft())
    expect(await codeOf(plane.activity(seedCaller, { ...completes, task_id: 'TASK-404' }))).toBe('not_found')
    const first = await plane.activity(seedCaller, completes)
    expect(await plane.activity(seedCaller, completes)).toEqual(first)
    expect(await plane.budget.get(anna)).toMatchObject({
      spent_today: 420,
      roles: { sysadmin: { spent: 420 } },
      agents: { a1: { spent: 420 } },
    })
    expect(await plane.tasks.get(anna, 'TASK-001')).toMatchObject({ status: 'completed', tokens_used: 420 })
  })

  test('an error makes a task for the orchestrator that names where it comes from, once', async () => {
    const { plane, run } = await planeWithRun(open)
    const reply = await plane.activity(run.caller, errs)
    expect(reply).toMatchObject({ task_id: 'TASK-001', escalation_task_id: 'TASK-002' })
    expect(await plane.tasks.get(anna, 'TASK-002')).toMatchObject({
      title: 'Escalation from a1: Vacuum failed: database locked',
      role: 'orchestrator',
      parent_task_id: 'TASK-001',
      priority: 'high',
      context: { escalation: { agent_id: 'a1', task_id: 'TASK-001', run_id: 'RUN-001', action_taken: 'Escalated' } },
    })
    expect((await plane.activity(run.caller, errs)).escalation_task_id).toBe('TASK-002')
    expect(await spent(plane)).toBe(1200)
    expect((await plane.tasks.get(anna, 'TASK-001')).status).toBe('running')
    await plane.activity(run.caller, { ...completes, result: { status: 'success', tokens_used: 1500 } })
    expect(await spent(plane)).toBe(1500)
  })

  test('an error of the orchestrator itself makes an event and no task', async () => {
    const plane = await moneyPlane(await open())
    await plane.addAgent('clawdie', { role: 'orchestrator' })
    const escalated = await plane.activity(seedCaller, errs)
    expect(escalated.escalation_task_id).toBe('TASK-001')
    const run = await plane.claimRun('clawdie', 'orchestrator')
    for (const caller of [run.caller, agentCaller('clawdie', 'orchestrator'), seedCaller])
      expect((await plane.activity(caller, { ...errs, agent_id: 'clawdie' })).escalation_task_id).toBeNull()
    expect((await plane.types()).filter((type) => type === 'agent.error')).toHaveLength(4)
    expect(await plane.rows('SELECT id FROM tasks')).toHaveLength(1)
  })

  test('a question that is asked again after its answer was lost is one approval', async () => {
    const { plane, run } = await planeWithRun(open)
    const first = await plane.activity(run.caller, asks)
    expect((await plane.activity(run.caller, asks)).approval_id).toBe(first.approval_id)
    expect((await plane.activity(seedCaller, asks)).approval_id).not.toBe(first.approval_id)
    expect(await plane.rows("SELECT id FROM approvals WHERE state = 'pending'")).toHaveLength(2)
  })

  test('hostile texts are kept as they are, but for what no database keeps, and never break a post', async () => {
    const { plane } = await planeWithRun(open)
    const nasty = `'; DROP TABLE tasks; -- \u001b[2J <script>alert(1)</script> \u202e`
    const reply = await plane.activity(seedCaller, { ...errs, error_message: nasty, task_id: 'TASK-001' })
    expect((await plane.tasks.get(anna, reply.escalation_task_id ?? '')).description).toContain(nasty)
    for (const broken of ['nul \0', 'half \ud800'])
      for (const post of [
        { ...errs, error_message: broken },
        { ...asks, operation: broken },
        { ...completes, result: { status: broken } },
      ])
        expect(await codeOf(plane.activity(seedCaller, post))).not.toBe('unavailable')
    expect((await plane.rows('SELECT operation FROM approvals ORDER BY id')).map((row) => row.operation)).toEqual([
      'nul \u{fffd}',
      'half \u{fffd}',
    ])
    expect(await codeOf(plane.activity(seedCaller, { ...asks, details: { a: '\ud800' } }))).toBe('bad_request')
    expect(await codeOf(plane.activity(seedCaller, { ...asks, details: { a: 'nul \0' } }))).toBe('done')
  })

  test('an agent that asks and asks, or fails and fails, is stopped at a hundred; names that nobody added count as one', async () => {
    const { plane, run } = await planeWithRun(open)
    for (const nameOf of [() => 'a1', (at: number) => `nobody-${at}`])
      for (const post of [asks, errs]) {
        const each = (at: number) => ({ ...post, agent_id: nameOf(at), operation: `op ${at}`, error_message: `op ${at}` })
        const posted = Array.from({ length: 103 }, (_, at) => codeOf(plane.activity(seedCaller, each(at))))
        expect((await Promise.all(posted)).filter((code) => code === 'too_many')).toHaveLength(3)
      }
    expect(await codeOf(plane.activity(seedCaller, { ...errs, agent_id: 'b1' }))).toBe('done')
    // Whoever asks in its name holds no run of the agent up.
    for (const post of [errs, asks]) expect(await codeOf(plane.activity(run.caller, { ...post, task_id: 'TASK-001' }))).toBe('done')
  })

  test('an answer to a question that only names a task does not wake it from another question', async () => {
    const { plane, run } = await planeWithRun(open)
    await plane.activity(run.caller, asks)
    await plane.activity(seedCaller, { ...asks, operation: 'something else', task_id: 'TASK-001' })
    await plane.approvals.decide(anna, 'APPR-002', { decision: 'approve', note: '' })
    expect((await plane.tasks.get(anna, 'TASK-001')).status).toBe('awaiting_approval')
  })
})
