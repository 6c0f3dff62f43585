import { expect, test } from 'bun:test'
import { forEachEngine } from '../support/engines.ts'
import { anna, draft, refusalOf, runCaller, taskPlane } from '../support/task-plane.ts'

const mail = { key: 'mail', idempotent: false, description: 'mail the operator' }

/** A task whose effect was begun by a run that is lost. */
async function begunAndLost(plane: Awaited<ReturnType<typeof taskPlane>>, effect = mail) {
  await plane.addAgent('a1')
  await plane.tasks.create(anna, draft())
  const first = runCaller(await plane.mustClaim())
  expect(await plane.tasks.beginEffect(first, 'TASK-001', effect)).toEqual({ state: 'new' })
  plane.clock.at += 60_000
  return runCaller(await plane.mustClaim())
}

forEachEngine('effects', (open) => {
  test('an effect that happened is answered with its result, also to the next run', async () => {
    const plane = await taskPlane(await open())
    await plane.addAgent('a1')
    await plane.tasks.create(anna, draft())
    const first = runCaller(await plane.mustClaim())
    await plane.tasks.beginEffect(first, 'TASK-001', mail)
    await plane.tasks.endEffect(first, 'TASK-001', 'mail', { id: 7 })
    expect(await plane.tasks.endEffect(first, 'TASK-001', 'mail', { id: 8 })).toEqual({ state: 'done', result: { id: 7 } })
    plane.clock.at += 60_000
    const second = runCaller(await plane.mustClaim())
    expect(await plane.tasks.beginEffect(second, 'TASK-001', mail)).toEqual({ state: 'done', result: { id: 7 } })
    expect(await refusalOf(plane.tasks.endEffect(second, 'TASK-001', 'other', null))).toBe('not_found')
  })

  test('one that was begun and not reported is in doubt: the task waits for an operator, and no run begins it again', async () => {
    const plane = await taskPlane(await open())
    const second = await begunAndLost(plane)
    expect(await refusalOf(plane.tasks.endEffect(second, 'TASK-001', 'mail', null))).toBe('in_doubt')
    expect(await plane.tasks.beginEffect(second, 'TASK-001', mail)).toEqual({ state: 'in_doubt' })
    expect(await plane.tasks.get(anna, 'TASK-001')).toMatchObject({ status: 'blocked', blocked_reason: 'in_doubt' })
    expect(await refusalOf(plane.tasks.beginEffect(second, 'TASK-001', mail))).toBe('lease_lost')
    expect(await plane.claim()).toBeUndefined()
    expect(await refusalOf(plane.tasks.edit(anna, 'TASK-001', { blocked: false }))).toBe('conflict')
    expect(await refusalOf(plane.tasks.retry(anna, 'TASK-001', ''))).toBe('conflict')
    expect(await plane.tasks.effects(anna, 'TASK-001')).toMatchObject([{ key: 'mail', state: 'in_doubt', run_id: 'RUN-001' }])
  })

  test('a task has a thousand effects at most', async () => {
    const plane = await taskPlane(await open())
    await plane.addAgent('a1')
    await plane.tasks.create(anna, draft())
    const run = runCaller(await plane.mustClaim())
    await plane.context.store.write(function* () {
      const rows = Array.from({ length: 999 }, (_, at) => `(1, 'k${at}', 1, 0, '', 'done', 0)`)
      yield [`INSERT INTO effects (task_id, key, run_id, idempotent, description, state, begun_at) VALUES ${rows.join(', ')}`]
    })
    expect(await plane.tasks.beginEffect(run, 'TASK-001', mail)).toEqual({ state: 'new' })
    expect(await refusalOf(plane.tasks.beginEffect(run, 'TASK-001', { ...mail, key: 'one more' }))).toBe('too_many')
    expect(await plane.tasks.beginEffect(run, 'TASK-001', { ...mail, key: 'k7' })).toMatchObject({ state: 'done' })
  })

  test('the same run that asks twice is told that it is in doubt', async () => {
    const plane = await taskPlane(await open())
    await plane.addAgent('a1')
    await plane.tasks.create(anna, draft())
    const run = runCaller(await plane.mustClaim())
    await plane.tasks.beginEffect(run, 'TASK-001', mail)
    expect(await plane.tasks.beginEffect(run, 'TASK-001', mail)).toEqual({ state: 'in_doubt' })
  })

  test('an operator says that it happened: the next run gets the result', async () => {
    const plane = await taskPlane(await open())
    await plane.tasks.beginEffect(await begunAndLost(plane), 'TASK-001', mail)
    expect(await refusalOf(plane.tasks.resolve(anna, 'TASK-001', { outcome: 'done', key: 'other', note: '' }))).toBe('not_found')
    await plane.tasks.resolve(anna, 'TASK-001', { outcome: 'done', result: 'seen in the mailbox', note: '' })
    const third = runCaller(await plane.mustClaim())
    expect(await plane.tasks.beginEffect(third, 'TASK-001', mail)).toEqual({ state: 'done', result: 'seen in the mailbox' })
    expect(await refusalOf(plane.tasks.resolve(anna, 'TASK-001', { outcome: 'done', note: '' }))).toBe('conflict')
  })

  test('an operator says that it did not happen: the next run does it; or gives it up: the task fails', async () => {
    const plane = await taskPlane(await open())
    await plane.tasks.beginEffect(await begunAndLost(plane), 'TASK-001', mail)
    await plane.tasks.resolve(anna, 'TASK-001', { outcome: 'redo', note: '' })
    const third = runCaller(await plane.mustClaim())
    expect(await plane.tasks.beginEffect(third, 'TASK-001', mail)).toEqual({ state: 'new' })
    await plane.tasks.beginEffect(third, 'TASK-001', mail)
    const failed = await plane.tasks.resolve(anna, 'TASK-001', { outcome: 'give_up', note: 'nobody knows' })
    expect(failed).toMatchObject({ status: 'failed', error: 'nobody knows' })
  })

  test('an idempotent effect is begun again by the next run', async () => {
    const plane = await taskPlane(await open())
    const second = await begunAndLost(plane, { ...mail, idempotent: true })
    expect(await plane.tasks.beginEffect(second, 'TASK-001', mail)).toEqual({ state: 'new' })
    expect(await plane.tasks.endEffect(second, 'TASK-001', 'mail', 1)).toEqual({ state: 'done', result: 1 })
  })
})
