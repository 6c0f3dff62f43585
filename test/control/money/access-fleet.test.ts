import { expect, test } from 'bun:test'
import type { Caller } from '../../../src/control/contract/caller.ts'
import { agentPatch } from '../../../src/control/contract/fleet-shapes.ts'
import { claimRequest } from '../../../src/control/contract/task-shapes.ts'
import { forEachEngine } from '../support/engines.ts'
import { codeOf, type MoneyPlane, moneyPlane, refusalOf, seedCaller } from '../support/money-plane.ts'
import { agentCaller, anna, draft } from '../support/task-plane.ts'

const others: readonly Caller[] = [
  agentCaller('a1'),
  { kind: 'run', id: 'a1', role: 'sysadmin', taskId: 'TASK-001', runId: 'RUN-001', attempt: 1 },
  seedCaller,
]

async function firstOperator(plane: MoneyPlane) {
  const made = await plane.access.firstOperator('anna')
  if (!made) throw new Error('there was one already')
  return made
}

forEachEngine('access and fleet', (open) => {
  test('only operators reach what is the operators’', async () => {
    const plane = await moneyPlane(await open())
    const { fleet, access, schedules } = plane
    await plane.addAgent('a1')
    for (const caller of others) {
      const tries: readonly Promise<unknown>[] = [
        access.operators(caller),
        access.newOperator(caller, 'eve'),
        access.revokeOperator(caller, 'x'),
        fleet.list(caller),
        fleet.add(caller, { id: 'e', role: 'e', heartbeat_enabled: true, description: '', daily_tokens: null }),
        fleet.edit(caller, 'a1', {}),
        fleet.remove(caller, 'a1'),
        fleet.pause(caller, 'a1', ''),
        fleet.resume(caller, 'a1'),
        fleet.wake(caller, 'a1'),
        fleet.keys(caller, 'a1'),
        fleet.newKey(caller, 'a1'),
        fleet.revokeKey(caller, 'a1', 'x'),
        fleet.rotateKey(caller, 'a1'),
        fleet.receipts(caller),
        fleet.get(caller, 'b1'),
        fleet.report(caller, 'b1', {}),
        schedules.list(caller),
        schedules.remove(caller, 'x'),
        plane.approvals.decide(caller, 'APPR-001', { decision: 'approve', note: '' }),
      ]
      for (const one of tries) expect(await codeOf(one)).toBe('forbidden')
    }
  })

  test('nobody has a secret that was never given out', async () => {
    const plane = await moneyPlane(await open())
    await firstOperator(plane)
    for (const secret of ['', 'cpo_', 'cpa_x', 'cpr_x', "' OR 1=1 --", 'x'.repeat(10_000)])
      expect(await plane.access.callerOf(secret)).toBeUndefined()
  })

  test('an operator token works until it is revoked, and the last one cannot be revoked', async () => {
    const plane = await moneyPlane(await open())
    const first = await firstOperator(plane)
    expect(first.token).toMatch(/^cpo_[\w-]{43}$/)
    const caller = await plane.access.callerOf(first.token)
    expect(caller).toEqual({ kind: 'operator', id: first.id, name: 'anna' })
    expect(await codeOf(plane.access.revokeOperator(anna, first.id))).toBe('conflict')
    plane.clock.at += 1
    const second = await plane.access.newOperator(anna, 'ben')
    expect((await plane.access.revokeOperator(anna, first.id)).revoked_at).not.toBeNull()
    expect(await plane.access.callerOf(first.token)).toBeUndefined()
    expect(await plane.access.operator(first.id)).toBeUndefined()
    expect((await plane.access.operator(second.id))?.caller).toEqual({ kind: 'operator', id: second.id, name: 'ben' })
    const kept = JSON.stringify(await plane.rows('SELECT * FROM operators'))
    expect(kept).not.toContain(second.token.slice(4))
    expect((await plane.access.operators(anna)).map((one) => one.name)).toEqual(['anna', 'ben'])
  })

  test('an ended session stays ended, and is forgotten when its cookie has expired', async () => {
    const plane = await moneyPlane(await open())
    const { id } = await firstOperator(plane)
    const expires = plane.clock.at + 1_000
    for (const session of ['one', 'one', 'two']) await plane.access.endSession(session, expires)
    expect(await plane.access.operator(id, 'one')).toBeUndefined()
    expect(await plane.access.operator(id, 'other')).toBeDefined()
    plane.clock.at = expires + 1
    await plane.access.endSession('three', expires + 1_000)
    expect((await plane.rows('SELECT id FROM ended_sessions')).map((row) => row.id)).toEqual(['three'])
  })

  test('of two operators that revoke each other at the same time one stays', async () => {
    const plane = await moneyPlane(await open())
    const [one, two] = [await firstOperator(plane), await plane.access.newOperator(anna, 'ben')]
    const codes = await Promise.all([one, two].map(({ id }) => codeOf(plane.access.revokeOperator(anna, id))))
    expect(codes.sort()).toEqual(['conflict', 'done'])
  })

  test('the first operator is made once, and a token from the environment is taken as it is', async () => {
    const plane = await moneyPlane(await open())
    await firstOperator(plane)
    expect(await plane.access.firstOperator('again')).toBeUndefined()
    const given = await plane.access.firstOperator('environment', 'my own secret')
    expect(given?.token).toBe('my own secret')
    expect(await plane.access.firstOperator('environment', 'my own secret')).toBeUndefined()
    expect((await plane.access.callerOf('my own secret'))?.kind).toBe('operator')
    await plane.access.revokeOperator(anna, given?.id ?? '')
    expect(await plane.access.firstOperator('environment', 'my own secret')).toBeUndefined()
    expect(await plane.access.callerOf('my own secret')).toBeUndefined()
  })

  test('a revoked key fails at once, its leases return to the queue, and their run tokens are worth nothing', async () => {
    const plane = await moneyPlane(await open())
    await plane.addAgent('a1')
    const { key, key_id } = await plane.fleet.newKey(anna, 'a1')
    const caller = await plane.access.callerOf(key)
    expect(caller).toEqual({ kind: 'agent', id: 'a1', role: 'sysadmin', keyId: key_id })
    const { claim } = await plane.startRun()
    expect((await plane.access.callerOf(claim.run_token))?.kind).toBe('run')
    await plane.fleet.revokeKey(anna, 'a1', key_id)
    expect(await plane.access.callerOf(key)).toBeUndefined()
    expect(await codeOf(plane.access.callerOf(claim.run_token))).toBe('lease_lost')
    expect(await plane.tasks.get(anna, 'TASK-001')).toMatchObject({ status: 'pending' })
    expect((await plane.rows('SELECT failures FROM tasks'))[0]?.failures).toBe(0)
    if (caller)
      expect(
        await codeOf(plane.tasks.claim(caller, claimRequest.parse({ role: 'sysadmin', agent_id: 'a1' }), new AbortController().signal)),
      ).toBe('unauthorized')
    expect(await plane.fleet.revokeKey(anna, 'a1', key_id)).toMatchObject({ key_id })
    expect(await codeOf(plane.fleet.revokeKey(anna, 'b1', key_id))).toBe('not_found')
  })

  test('a claim that waits while its key is revoked gets no task', async () => {
    const plane = await moneyPlane(await open())
    await plane.addAgent('a1')
    const { key, key_id } = await plane.fleet.newKey(anna, 'a1')
    const caller = await plane.access.callerOf(key)
    if (!caller) throw new Error('no caller')
    const request = claimRequest.parse({ role: 'sysadmin', agent_id: 'a1', wait_ms: 25_000 })
    const waiting = codeOf(plane.tasks.claim(caller, request, new AbortController().signal))
    await Bun.sleep(50)
    await plane.fleet.revokeKey(anna, 'a1', key_id)
    await plane.tasks.create(anna, draft())
    expect(await waiting).toBe('unauthorized')
    expect((await plane.tasks.get(anna, 'TASK-001')).status).toBe('pending')
  })

  test('rotating makes one new key, revokes all others, and leaves running leases alone', async () => {
    const plane = await moneyPlane(await open())
    await plane.addAgent('a1')
    const old = [await plane.fleet.newKey(anna, 'a1'), await plane.fleet.newKey(anna, 'a1')]
    const { claim } = await plane.startRun()
    const made = await plane.fleet.rotateKey(anna, 'a1')
    for (const { key } of old) expect(await plane.access.callerOf(key)).toBeUndefined()
    expect((await plane.access.callerOf(made.key))?.id).toBe('a1')
    expect((await plane.access.callerOf(claim.run_token))?.kind).toBe('run')
    const keys = await plane.fleet.keys(anna, 'a1')
    expect(keys.filter((one) => one.revoked_at === null).map((one) => one.key_id)).toEqual([made.key_id])
    expect(keys).toHaveLength(3)
    expect(JSON.stringify(keys)).not.toContain('cpa_')
  })

  test('the use of a key is noted once a minute', async () => {
    const plane = await moneyPlane(await open())
    await plane.addAgent('a1')
    const { key } = await plane.fleet.newKey(anna, 'a1')
    const lastUse = async () => (await plane.fleet.keys(anna, 'a1'))[0]?.last_used_at
    await plane.access.callerOf(key)
    const first = await lastUse()
    plane.clock.at += 30_000
    await plane.access.callerOf(key)
    expect(await lastUse()).toBe(first ?? '')
    plane.clock.at += 31_000
    await plane.access.callerOf(key)
    expect(await lastUse()).toBe(new Date(plane.clock.at).toISOString())
  })

  test('a run token is in force as long as its lease, and for an hour answers what it ended itself', async () => {
    const plane = await moneyPlane(await open())
    await plane.addAgent('a1')
    const lost = await plane.startRun()
    plane.clock.at += 60_001
    const refused = await refusalOf(plane.access.callerOf(lost.claim.run_token))
    expect([refused.code, refused.details.run_id]).toEqual(['lease_lost', 'RUN-001'])
    const run = await plane.claimRun()
    await plane.complete(run.caller, 'TASK-001')
    expect((await plane.access.callerOf(run.claim.run_token))?.kind).toBe('run')
    plane.clock.at += 3_600_000
    expect(await codeOf(plane.access.callerOf(run.claim.run_token))).toBe('lease_lost')
  })

  test('the token of a run that ended is worth nothing once a key of its agent is revoked, or the agent is removed', async () => {
    const plane = await moneyPlane(await open())
    for (const id of ['a1', 'b1']) await plane.addAgent(id)
    const { key_id } = await plane.fleet.newKey(anna, 'a1')
    const [first, second] = [await plane.startRun('a1'), await plane.startRun('b1')]
    for (const { caller } of [first, second]) await plane.complete(caller, caller.taskId)
    plane.clock.at += 1
    await plane.fleet.revokeKey(anna, 'a1', key_id)
    expect(await codeOf(plane.access.callerOf(first.claim.run_token))).toBe('lease_lost')
    expect(await codeOf(plane.access.callerOf(second.claim.run_token))).toBe('done')
    await plane.fleet.remove(anna, 'b1')
    expect(await codeOf(plane.access.callerOf(second.claim.run_token))).toBe('lease_lost')
    plane.clock.at += 1
    const later = await plane.startRun('a1')
    await plane.complete(later.caller, later.caller.taskId)
    expect(await codeOf(plane.access.callerOf(later.claim.run_token))).toBe('done')
  })

  test('agents are listed as they were added, with what they run and spent', async () => {
    const plane = await moneyPlane(await open())
    for (const id of ['z1', 'a1', 'm1']) await plane.addAgent(id, id === 'a1' ? { daily_tokens: 500 } : {})
    expect(await codeOf(plane.addAgent('a1'))).toBe('conflict')
    const { claim, caller } = await plane.startRun('a1')
    const { reservation_id } = await plane.budget.reserve(caller, { tokens: 10, purpose: '' })
    await plane.budget.settle(caller, { reservation_id, tokens: 7, model: 'echo' })
    const agents = await plane.fleet.list(anna)
    expect(agents.map((agent) => agent.id)).toEqual(['z1', 'a1', 'm1'])
    expect(agents[1]).toMatchObject({
      spent_today: 7,
      daily_tokens: 500,
      running: [{ task_id: 'TASK-001', run_id: claim.run_id, title: 'look' }],
    })
    expect((await plane.fleet.get(agentCaller('a1'), 'a1')).id).toBe('a1')
  })

  test('a paused agent gets no new task, what it runs goes on, and it claims again when it is resumed', async () => {
    const plane = await moneyPlane(await open())
    await plane.addAgent('a1')
    const { caller } = await plane.startRun()
    expect(await plane.fleet.pause(anna, 'a1', 'looking into it')).toMatchObject({ paused: true, paused_reason: 'looking into it' })
    await plane.tasks.create(anna, draft({ title: 'next' }))
    expect(await plane.claim('a1')).toBeUndefined()
    expect((await plane.tasks.beat(caller, 'TASK-001')).cancel_requested).toBe(false)
    expect(await plane.fleet.resume(anna, 'a1')).toMatchObject({ paused: false, paused_reason: null })
    expect((await plane.claim('a1'))?.task.title).toBe('next')
  })

  test('edits keep what they do not name; wake counts up; a report is kept, and receipts stay until new ones come', async () => {
    const plane = await moneyPlane(await open())
    await plane.addAgent('a1', { description: 'first', daily_tokens: 5 })
    const patch = agentPatch.parse({ daily_tokens: null, heartbeat_enabled: false })
    expect(await plane.fleet.edit(anna, 'a1', patch)).toMatchObject({ description: 'first', daily_tokens: null, heartbeat_enabled: false })
    expect((await plane.fleet.wake(anna, 'a1')).wakes).toBe(1)
    await plane.fleet.report(agentCaller('a1'), 'a1', { host: 'north' }, { entries: 3 })
    const reported = await plane.fleet.report(agentCaller('a1'), 'a1', { host: 'south' })
    expect(reported).toMatchObject({ worker: { host: 'south' }, last_seen_at: new Date(plane.clock.at).toISOString() })
    expect(await plane.fleet.receipts(anna)).toMatchObject([{ agent_id: 'a1', receipts: { entries: 3 } }])
    expect(await codeOf(plane.fleet.report(agentCaller('a1'), 'a1', { text: 'x'.repeat(70_000) }))).toBe('too_large')
    expect(await codeOf(plane.fleet.edit(anna, 'nobody', {}))).toBe('not_found')
  })

  test('a higher limit of an agent wakes its task; a removed agent loses keys and leases', async () => {
    const plane = await moneyPlane(await open())
    await plane.addAgent('a1', { daily_tokens: 10 })
    const { key } = await plane.fleet.newKey(anna, 'a1')
    const { caller } = await plane.startRun('a1', { agent_id: 'a1' })
    const { reservation_id } = await plane.budget.reserve(caller, { tokens: 10, purpose: '' })
    await plane.budget.settle(caller, { reservation_id, tokens: 10, model: '' })
    expect(await codeOf(plane.budget.reserve(caller, { tokens: 5, purpose: '' }))).toBe('budget_exceeded')
    await plane.fleet.edit(anna, 'a1', { daily_tokens: 9 })
    expect((await plane.tasks.get(anna, 'TASK-001')).status).toBe('budget_blocked')
    await plane.fleet.edit(anna, 'a1', { daily_tokens: 20 })
    const again = await plane.claimRun()
    await plane.fleet.remove(anna, 'a1')
    expect(await plane.access.callerOf(key)).toBeUndefined()
    expect(await codeOf(plane.access.callerOf(again.claim.run_token))).toBe('lease_lost')
    expect(await codeOf(plane.fleet.get(anna, 'a1'))).toBe('not_found')
    expect((await plane.tasks.get(anna, 'TASK-001')).status).toBe('pending')
  })
})
