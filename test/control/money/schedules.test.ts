import { expect, test } from 'bun:test'
import { type ScheduleDraft, scheduleDraft } from '../../../src/control/contract/task-shapes.ts'
import { fireSchedules } from '../../../src/control/plane/schedules.ts'
import { forEachEngine } from '../support/engines.ts'
import { codeOf, type MoneyPlane, moneyPlane } from '../support/money-plane.ts'
import { anna, draft } from '../support/task-plane.ts'

const schedule = (fields: Partial<ScheduleDraft> = {}): ScheduleDraft =>
  scheduleDraft.parse({ name: 'nightly', cron: '0 2 * * *', task: draft({ title: 'vacuum', role: 'db-admin' }), ...fields })
const titles = async (plane: MoneyPlane) => (await plane.rows("SELECT title FROM tasks WHERE title = 'vacuum'")).length
const at = (plane: MoneyPlane, time: string) => {
  plane.clock.at = Date.parse(time)
  return fireSchedules(plane.context)
}

forEachEngine('schedules', (open) => {
  test('what is no timing, or a name that is taken, is refused', async () => {
    const plane = await moneyPlane(await open())
    const add = (fields: Partial<ScheduleDraft>) => codeOf(plane.schedules.add(anna, schedule(fields)))
    for (const cron of ['', 'nonsense', '61 * * * *', '0 0 31 2 *', '* * * * * *']) expect(await add({ cron })).toBe('bad_request')
    expect(await add({ every: '30m' })).toBe('bad_request')
    expect(await codeOf(plane.schedules.add(anna, scheduleDraft.parse({ name: 'x', every: '1s', task: draft() })))).toBe('bad_request')
    expect(await add({ timezone: 'Mars/Olympus' })).toBe('bad_request')
    expect(await add({})).toBe('done')
    expect(await add({})).toBe('conflict')
  })

  test('an id means the schedule with this id, also where another one has it as its name', async () => {
    const plane = await moneyPlane(await open())
    await plane.schedules.add(anna, schedule({ name: 'SCHED-002' }))
    await plane.schedules.add(anna, schedule({ name: 'weekly' }))
    await plane.schedules.remove(anna, 'SCHED-002')
    expect((await plane.schedules.list(anna)).map(({ name }) => name)).toEqual(['SCHED-002'])
    await plane.schedules.remove(anna, 'SCHED-002')
    expect(await plane.schedules.list(anna)).toEqual([])
  })

  test('a task is made at its time in its zone, once, also where the clocks change', async () => {
    const plane = await moneyPlane(await open())
    plane.clock.at = Date.parse('2026-10-23T12:00:00Z')
    const made = await plane.schedules.add(anna, schedule({ timezone: 'Europe/Ljubljana', overlap: 'allow' }))
    expect(made).toMatchObject({ schedule_id: 'SCHED-001', next_at: '2026-10-24T00:00:00.000Z', last_task_id: null })
    await at(plane, '2026-10-23T23:59:59Z')
    expect(await titles(plane)).toBe(0)
    await at(plane, '2026-10-24T00:00:00Z')
    await at(plane, '2026-10-24T00:00:00Z')
    expect(await titles(plane)).toBe(1)
    // 02:00 comes twice in the night of the 25th.
    for (const time of ['2026-10-25T00:00:01Z', '2026-10-25T01:00:01Z', '2026-10-25T02:00:01Z']) await at(plane, time)
    expect(await titles(plane)).toBe(2)
    expect((await plane.schedules.list(anna))[0]).toMatchObject({ next_at: '2026-10-26T01:00:00.000Z', last_task_id: 'TASK-002' })
    expect((await plane.tasks.get(anna, 'TASK-001')).context).toMatchObject({
      schedule: { name: 'nightly', due_at: '2026-10-24T00:00:00.000Z' },
    })
    expect((await plane.tasks.get(anna, 'TASK-001')).created_by).toBe('schedule nightly')
  })

  for (const [missed, expected] of [
    ['run-once', 1],
    ['skip', 0],
    ['run-all', 3],
  ] as const)
    test(`three nights without a daemon make ${expected} tasks with ${missed}`, async () => {
      const plane = await moneyPlane(await open())
      await plane.schedules.add(anna, schedule({ missed, overlap: 'allow' }))
      await at(plane, '2026-04-10T12:00:00Z')
      expect(await titles(plane)).toBe(expected)
      await at(plane, '2026-04-11T02:00:00Z')
      expect(await titles(plane)).toBe(expected + 1)
    })

  test('while the task before is open, skip makes none, and run-all makes the next one afterwards', async () => {
    const plane = await moneyPlane(await open())
    await plane.schedules.add(anna, schedule())
    await plane.schedules.add(anna, schedule({ name: 'all', missed: 'run-all', task: draft({ title: 'all', role: 'db-admin' }) }))
    await at(plane, '2026-04-08T02:00:00Z')
    await at(plane, '2026-04-09T02:00:00Z')
    expect(await titles(plane)).toBe(1)
    const all = () => plane.rows("SELECT id FROM tasks WHERE title = 'all' ORDER BY id")
    expect(await all()).toHaveLength(1)
    await plane.tasks.cancel(anna, `TASK-00${(await all())[0]?.id}`, '')
    await at(plane, '2026-04-09T03:00:00Z')
    expect(await all()).toHaveLength(2)
    expect((await plane.types()).filter((type) => type === 'schedule.skipped')).toHaveLength(1)
  })

  test('an interval is counted from when it was made, and a backlog of run-all is at most a hundred', async () => {
    const plane = await moneyPlane(await open())
    const every = scheduleDraft.parse({
      name: 'often',
      every: '30m',
      missed: 'run-all',
      overlap: 'allow',
      task: draft({ title: 'vacuum' }),
    })
    expect((await plane.schedules.add(anna, every)).next_at).toBe('2026-04-07T11:00:00.000Z')
    await at(plane, '2026-04-07T11:00:05Z')
    expect((await plane.schedules.list(anna))[0]?.next_at).toBe('2026-04-07T11:30:00.000Z')
    await at(plane, '2026-04-14T11:00:05Z')
    expect(await titles(plane)).toBe(101)
  }, 120_000)

  test('a disabled schedule makes nothing and catches nothing up; a removed one is gone', async () => {
    const plane = await moneyPlane(await open())
    await plane.schedules.add(anna, schedule())
    expect((await plane.schedules.setEnabled(anna, 'SCHED-001', false)).next_at).toBeNull()
    await at(plane, '2026-04-09T03:00:00Z')
    expect((await plane.schedules.setEnabled(anna, 'nightly', true)).next_at).toBe('2026-04-10T02:00:00.000Z')
    await at(plane, '2026-04-09T04:00:00Z')
    expect(await titles(plane)).toBe(0)
    await plane.schedules.remove(anna, 'SCHED-001')
    await at(plane, '2026-04-11T04:00:00Z')
    expect(await titles(plane)).toBe(0)
    expect(await codeOf(plane.schedules.remove(anna, 'SCHED-001'))).toBe('not_found')
  })

  test('a clock that goes back fires nothing a second time', async () => {
    const plane = await moneyPlane(await open())
    await plane.schedules.add(anna, schedule({ overlap: 'allow' }))
    await at(plane, '2026-04-08T02:00:01Z')
    await plane.store.write(function* () {
      yield ['UPDATE schedules SET next_at = ?', [Date.parse('2026-04-08T02:00:00Z')]]
    })
    await at(plane, '2026-04-08T02:00:02Z')
    expect(await titles(plane)).toBe(1)
  })

  test('a schedule whose task cannot be made says so, and does not stop the others', async () => {
    const plane = await moneyPlane(await open())
    await plane.schedules.add(anna, schedule({ name: 'broken', task: draft({ title: 'x', parent_task_id: 'TASK-404' }) }))
    await plane.schedules.add(anna, schedule())
    await at(plane, '2026-04-08T02:00:00Z')
    expect(await titles(plane)).toBe(1)
    expect(await plane.types()).toContain('schedule.failed')
    expect((await plane.schedules.list(anna))[0]?.next_at).toBe('2026-04-09T02:00:00.000Z')
  })

  test('two daemons that look at the same time make one task', async () => {
    const plane = await moneyPlane(await open())
    await plane.schedules.add(anna, schedule())
    plane.clock.at = Date.parse('2026-04-08T02:00:00Z')
    await Promise.all([fireSchedules(plane.context), fireSchedules(plane.context), fireSchedules(plane.context)])
    expect(await titles(plane)).toBe(1)
  })
})
