import { expect, test } from 'bun:test'
import { forEachEngine } from '../support/engines.ts'
import { moneyPlane } from '../support/money-plane.ts'
import { anna } from '../support/task-plane.ts'

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
})
