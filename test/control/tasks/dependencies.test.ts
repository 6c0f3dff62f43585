import { expect, test } from 'bun:test'
import { forEachEngine } from '../support/engines.ts'
import { anna, draft, refusalOf, runCaller, taskPlane } from '../support/task-plane.ts'

forEachEngine('dependencies', (open) => {
  test('a task waits for all it needs, by name, and is claimable when the last one completed', async () => {
    const plane = await taskPlane(await open())
    await plane.addAgent('a1')
    await plane.tasks.createMany(anna, [draft(), draft()])
    const { task } = await plane.tasks.create(anna, draft({ depends_on: ['TASK-002', 'TASK-001', 'TASK-001'] }))
    expect(task).toMatchObject({ status: 'blocked', blocked_reason: 'dependency', depends_on: ['TASK-001', 'TASK-002'] })
    await plane.complete(runCaller(await plane.mustClaim()), 'TASK-001')
    expect((await plane.tasks.get(anna, 'TASK-003')).status).toBe('blocked')
    await plane.complete(runCaller(await plane.mustClaim()), 'TASK-002')
    expect((await plane.mustClaim()).task).toMatchObject({ task_id: 'TASK-003', depends_on: ['TASK-001', 'TASK-002'] })
    const { task: late } = await plane.tasks.create(anna, draft({ depends_on: ['TASK-001'] }))
    expect(late.status).toBe('pending')
  })

  test('ten thousand tasks may wait for one', async () => {
    const plane = await taskPlane(await open())
    await plane.tasks.create(anna, draft())
    await plane.context.store.write(function* () {
      for (let from = 0; from < 10_000; from += 1_000)
        yield [
          `INSERT INTO dependencies (task_id, needs) VALUES ${Array.from({ length: 1_000 }, (_, at) => `(${1_000 + from + at}, 1)`).join()}`,
        ]
    })
    expect(await refusalOf(plane.tasks.create(anna, draft({ depends_on: ['TASK-001'] })))).toBe('too_many')
  })

  test('when what it needs fails, dies or is cancelled it goes on waiting and says why; a retry helps', async () => {
    const plane = await taskPlane(await open())
    await plane.addAgent('a1')
    await plane.tasks.createMany(anna, [draft(), draft({ max_attempts: 1 }), draft()])
    for (const need of ['TASK-001', 'TASK-002', 'TASK-003']) await plane.tasks.create(anna, draft({ depends_on: [need] }))
    await plane.tasks.release(runCaller(await plane.mustClaim()), 'TASK-001', { outcome: 'failed' })
    await plane.tasks.release(runCaller(await plane.mustClaim()), 'TASK-002', { outcome: 'retry' })
    await plane.tasks.cancel(anna, 'TASK-003', '')
    const waiting = async (id: string) => {
      const { status, blocked_reason, error } = await plane.tasks.get(anna, id)
      return `${status}(${blocked_reason}): ${error}`
    }
    expect(await waiting('TASK-004')).toBe('blocked(dependency): needs TASK-001, which failed')
    expect(await waiting('TASK-005')).toBe('blocked(dependency): needs TASK-002, which used up its attempts')
    expect(await waiting('TASK-006')).toBe('blocked(dependency): needs TASK-003, which was cancelled')
    expect((await plane.types()).filter((type) => type === 'task.dependency_failed')).toHaveLength(3)
    expect((await plane.tasks.create(anna, draft({ depends_on: ['TASK-001'] }))).task.error).toBe('needs TASK-001, which failed')
    await plane.tasks.retry(anna, 'TASK-001', '')
    expect(await waiting('TASK-004')).toBe('blocked(dependency): null')
    await plane.tasks.cancel(anna, 'TASK-002', 'nobody wants it')
    await plane.tasks.retry(anna, 'TASK-002', '')
    expect(await waiting('TASK-005')).toBe('blocked(dependency): null')
    await plane.tasks.cancel(anna, 'TASK-002', '')
    await plane.complete(runCaller(await plane.mustClaim()), 'TASK-001')
    expect((await plane.tasks.get(anna, 'TASK-004')).status).toBe('pending')
  })

  test('a task never waits for itself, over however many tasks', async () => {
    const plane = await taskPlane(await open())
    await plane.tasks.create(anna, draft())
    for (const need of ['TASK-001', 'TASK-002', 'TASK-003']) await plane.tasks.create(anna, draft({ depends_on: [need] }))
    expect(await refusalOf(plane.tasks.edit(anna, 'TASK-001', { depends_on: ['TASK-001'] }))).toBe('dependency_cycle')
    expect(await refusalOf(plane.tasks.edit(anna, 'TASK-001', { depends_on: ['TASK-004'] }))).toBe('dependency_cycle')
    expect(await plane.tasks.get(anna, 'TASK-001')).toMatchObject({ status: 'pending', depends_on: [], version: 1 })
    await plane.tasks.create(anna, draft())
    expect(await plane.tasks.edit(anna, 'TASK-001', { depends_on: ['TASK-005'] })).toMatchObject({
      status: 'blocked',
      blocked_reason: 'dependency',
    })
    expect(await plane.tasks.edit(anna, 'TASK-001', { depends_on: [] })).toMatchObject({ status: 'pending' })
  })
})
