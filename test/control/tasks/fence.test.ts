import { expect, test } from 'bun:test'
import type { Caller } from '../../../src/control/contract/caller.ts'
import { forEachEngine } from '../support/engines.ts'
import { anna, draft, refusalOf, runCaller, taskPlane } from '../support/task-plane.ts'

type Plane = Awaited<ReturnType<typeof taskPlane>>

/** Every write that a run token permits. */
function writes(plane: Plane, caller: Caller): readonly (() => Promise<unknown>)[] {
  return [
    () => plane.tasks.beat(caller, 'TASK-001'),
    () => plane.tasks.release(caller, 'TASK-001', { outcome: 'retry' }),
    () => plane.tasks.release(caller, 'TASK-001', { outcome: 'failed' }),
    () => plane.tasks.beginEffect(caller, 'TASK-001', { key: 'mail', idempotent: false, description: '' }),
    () => plane.tasks.beginEffect(caller, 'TASK-001', { key: 'new', idempotent: true, description: '' }),
    () => plane.tasks.endEffect(caller, 'TASK-001', 'mail', 'sent'),
    () => plane.complete(caller, 'TASK-001', { tokensUsed: 99 }),
  ]
}

async function everything(plane: Plane): Promise<string> {
  const tables = ['tasks', 'runs', 'effects', 'events', 'ledger', 'budget_days', 'labels', 'sequences']
  return JSON.stringify(await Promise.all(tables.map((table) => plane.all(`SELECT * FROM ${table} ORDER BY 1, 2`))))
}

async function refuseAll(plane: Plane, caller: Caller): Promise<void> {
  const before = await everything(plane)
  for (const write of writes(plane, caller)) expect(await refusalOf(write())).toBe('lease_lost')
  expect(await everything(plane)).toBe(before)
}

forEachEngine('the fence', (open) => {
  test('a write under an expired lease changes nothing, also when nobody took the task', async () => {
    const plane = await taskPlane(await open())
    await plane.addAgent('a1')
    await plane.tasks.create(anna, draft())
    const lost = runCaller(await plane.mustClaim())
    await plane.tasks.beginEffect(lost, 'TASK-001', { key: 'mail', idempotent: false, description: '' })
    plane.clock.at += 60_000
    await refuseAll(plane, lost)
  })

  test('a write under a lease that another run has now, or that ended, changes nothing', async () => {
    const plane = await taskPlane(await open())
    await plane.addAgent('a1')
    await plane.tasks.create(anna, draft())
    const lost = runCaller(await plane.mustClaim())
    await plane.tasks.beginEffect(lost, 'TASK-001', { key: 'mail', idempotent: false, description: '' })
    plane.clock.at += 60_000
    const holder = runCaller(await plane.mustClaim())
    await refuseAll(plane, lost)
    await plane.complete(holder, 'TASK-001')
    await refuseAll(plane, lost)
    await refuseAll(plane, holder)
  })

  test('a run token writes to its own task only', async () => {
    const plane = await taskPlane(await open())
    await plane.addAgent('a1')
    await plane.tasks.createMany(anna, [draft(), draft()])
    const [first, second] = [runCaller(await plane.mustClaim()), runCaller(await plane.mustClaim())]
    expect(await refusalOf(plane.tasks.beat(first, 'TASK-002'))).toBe('forbidden')
    expect(await refusalOf(plane.complete(second, 'TASK-001'))).toBe('forbidden')
    expect(await refusalOf(plane.tasks.get(first, 'TASK-002'))).toBe('forbidden')
    expect((await plane.tasks.get(first, 'TASK-001')).status).toBe('running')
  })

  test('of many who claim at once exactly one gets the task', async () => {
    const plane = await taskPlane(await open())
    for (const id of ['a1', 'a2', 'a3', 'a4']) await plane.addAgent(id)
    await plane.tasks.create(anna, draft())
    const claims = await Promise.all(['a1', 'a2', 'a3', 'a4'].map((id) => plane.claim(id)))
    expect(claims.filter((claim) => claim !== undefined)).toHaveLength(1)
  })
})
