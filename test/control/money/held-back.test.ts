import { expect, test } from 'bun:test'
import { tables } from '../../../src/control/store/copy-store.ts'
import { notWoken } from '../chaos/check.ts'
import { forEachEngine } from '../support/engines.ts'
import { codeOf, moneyPlane, seedCaller } from '../support/money-plane.ts'
import { anna, draft } from '../support/task-plane.ts'

const asks = { event_type: 'approval_request', agent_id: 'a1', operation: 'Merge PR #42' }
const errs = { event_type: 'error', agent_id: 'a1', error_message: 'Vacuum failed: database locked' }
const columns = tables().find(({ name }) => name === 'approvals')?.columns ?? []

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

  test('the shared secret, which may speak in any name, asks and reports no more once enough is open', async () => {
    const plane = await moneyPlane(await open(), { openTasksOfAgent: 101 })
    for (const id of ['a1', 'b1', 'c1']) await plane.addAgent(id)
    const hundred = Array.from({ length: 103 }, (_, at) => `op ${at}`)
    const asked = await Promise.all(hundred.map((operation) => codeOf(plane.activity(seedCaller, { ...asks, operation }))))
    const failed = await Promise.all(hundred.map((error_message) => codeOf(plane.activity(seedCaller, { ...errs, error_message }))))
    for (const codes of [asked, failed]) expect(codes.filter((code) => code === 'too_many')).toHaveLength(3)
    expect(await codeOf(plane.activity(seedCaller, { ...errs, agent_id: 'b1' }))).toBe('done')
    // Whoever has the shared secret may speak for any number of names, but not without end.
    expect(await codeOf(plane.activity(seedCaller, { ...errs, agent_id: 'c1' }))).toBe('too_many')
    expect(await codeOf(plane.activity(anna, { ...errs, agent_id: 'c1' }))).toBe('done')
    expect(await codeOf(plane.activity(seedCaller, { ...asks, agent_id: 'b1' }))).toBe('done')
    await plane.store.write(function* () {
      for (let name = 1; name < 10; name += 1)
        yield [
          `INSERT INTO approvals (${columns.join(', ')}) SELECT id + ?, ${columns.slice(1).join(', ')} FROM approvals WHERE id <= 100`,
          [name * 1_000],
        ]
    })
    const [more, enough] = [
      await codeOf(plane.activity(anna, { ...asks, agent_id: 'd1' })),
      await codeOf(plane.activity(seedCaller, { ...asks, agent_id: 'c1' })),
    ]
    expect([more, enough]).toEqual(['done', 'too_many'])
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
