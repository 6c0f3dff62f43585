import { expect, test } from 'bun:test'
import { notWoken } from '../chaos/check.ts'
import { forEachEngine } from '../support/engines.ts'
import { moneyPlane } from '../support/money-plane.ts'
import { anna, draft } from '../support/task-plane.ts'

forEachEngine('held back', (open) => {
  test('a task that an operator holds back and lets go still waits for its answer', async () => {
    const plane = await moneyPlane(await open())
    await plane.addAgent('a1')
    const { caller } = await plane.startRun()
    await plane.activity(caller, { event_type: 'approval_request', agent_id: 'a1', operation: 'Merge PR #42' })
    for (const blocked of [true, false]) await plane.tasks.edit(anna, 'TASK-001', { blocked })
    expect(await plane.tasks.get(anna, 'TASK-001')).toMatchObject({ status: 'awaiting_approval', blocked_reason: null })
    expect(await plane.claim()).toBeUndefined()
    await plane.tasks.edit(anna, 'TASK-001', { blocked: true })
    await plane.approvals.decide(anna, 'APPR-001', { decision: 'approve', note: '' })
    expect(await plane.tasks.get(anna, 'TASK-001')).toMatchObject({ status: 'blocked', blocked_reason: 'operator' })
    await plane.tasks.edit(anna, 'TASK-001', { blocked: false })
    expect((await plane.tasks.get(anna, 'TASK-001')).status).toBe('pending')
  })

  test('a task that asks anew waits for the new answer, also beside an unused old one; the check of the chaos runs tells it from a lost wake', async () => {
    const plane = await moneyPlane(await open())
    await plane.addAgent('a1')
    const ask = async (operation: string) =>
      await plane.activity((await plane.claimRun()).caller, { event_type: 'approval_request', agent_id: 'a1', operation })
    await plane.tasks.create(anna, draft())
    await ask('Merge PR #42')
    await plane.approvals.decide(anna, 'APPR-001', { decision: 'approve', note: '' })
    await ask('Merge PR #43')
    expect((await plane.rows('SELECT state FROM approvals ORDER BY id')).map(({ state }) => state)).toEqual(['approved', 'pending'])
    expect((await plane.tasks.get(anna, 'TASK-001')).status).toBe('awaiting_approval')
    expect(await plane.rows(notWoken)).toEqual([])
    // A decision without its wake, which the plane never makes.
    await plane.store.write(function* () {
      yield ["UPDATE approvals SET state = 'approved' WHERE id = 2"]
    })
    expect(await plane.rows(notWoken)).toEqual([{ id: 1 }])
  })
})
