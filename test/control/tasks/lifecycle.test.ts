import { expect, test } from 'bun:test'
import { tables } from '../../../src/control/store/copy-store.ts'
import { forEachEngine } from '../support/engines.ts'
import { agentCaller, anna, draft, query, refusalOf, runCaller, taskPlane } from '../support/task-plane.ts'

forEachEngine('tasks', (open) => {
  test('an agent, a run and the shared secret are refused what belongs to operators', async () => {
    const plane = await taskPlane(await open())
    await plane.tasks.create(anna, draft())
    await plane.addAgent('a1')
    const run = runCaller(await plane.mustClaim())
    for (const caller of [agentCaller('a1'), run, { kind: 'seed', id: 'shared-secret' } as const]) {
      const refused = [
        plane.tasks.edit(caller, 'TASK-001', { title: 'mine' }),
        plane.tasks.cancel(caller, 'TASK-001', ''),
        plane.tasks.retry(caller, 'TASK-001', ''),
        plane.tasks.resolve(caller, 'TASK-001', { outcome: 'done', note: '' }),
      ]
      expect(await Promise.all(refused.map(refusalOf))).toEqual(['forbidden', 'forbidden', 'forbidden', 'forbidden'])
    }
    expect(await refusalOf(plane.tasks.create(run, draft()))).toBe('forbidden')
    expect(await refusalOf(plane.tasks.list(run, query()))).toBe('forbidden')
    expect(await refusalOf(plane.tasks.get(agentCaller('b1', 'db-admin'), 'TASK-001'))).toBe('forbidden')
    expect(await refusalOf(plane.tasks.list(agentCaller('b1', 'db-admin'), query({ role: 'sysadmin' })))).toBe('forbidden')
    expect(await plane.tasks.get(anna, 'TASK-001')).toMatchObject({ title: 'look', status: 'running', version: 2 })
  })

  test('a task is created, claimed and completed', async () => {
    const plane = await taskPlane(await open())
    await plane.addAgent('a1')
    const { task } = await plane.tasks.create(anna, draft({ title: 'Check if db jail is running', context: { jail_name: 'clawdie-db' } }))
    expect(task).toMatchObject({ task_id: 'TASK-001', status: 'pending', assigned_to: 'sysadmin', version: 1, created_by: 'operator anna' })
    const claim = await plane.mustClaim()
    expect(claim).toMatchObject({ run_id: 'RUN-001', attempt: 1, task: { status: 'running', assigned_to: 'a1' } })
    expect(claim.run_token).toMatch(/^cpr_[\w-]{43}$/)
    await plane.complete(runCaller(claim), 'TASK-001', { output: 'up', tokensUsed: 420 })
    expect(await plane.tasks.get(anna, 'TASK-001')).toMatchObject({
      status: 'completed',
      tokens_used: 420,
      lease_until: null,
      result: { output: 'up' },
    })
    expect(await plane.types()).toEqual(['task.created', 'task.claimed', 'task.completed'])
  })

  test('a run token itself is nowhere in the database', async () => {
    const plane = await taskPlane(await open())
    await plane.addAgent('a1')
    await plane.tasks.create(anna, draft())
    const { run_token } = await plane.mustClaim()
    const kept = JSON.stringify([
      await plane.all('SELECT * FROM tasks'),
      await plane.all('SELECT * FROM runs'),
      await plane.all('SELECT * FROM events'),
    ])
    expect(kept).not.toContain(run_token.slice(4))
  })

  test('the same key creates one task and gets the same reply; with another request it is refused', async () => {
    const plane = await taskPlane(await open())
    const once = { key: 'k1', digest: 'd1' }
    const answers: Awaited<ReturnType<typeof plane.tasks.create>>[] = []
    answers.push(...(await Promise.all([plane.tasks.create(anna, draft(), once), plane.tasks.create(anna, draft(), once)])))
    await plane.tasks.edit(anna, 'TASK-001', { title: 'changed since' })
    answers.push(await plane.tasks.create(anna, draft(), once))
    expect(answers.map(({ replayed }) => replayed)).toEqual([false, true, true])
    expect(JSON.stringify(answers[2]?.task)).toBe(JSON.stringify(answers[0]?.task))
    expect(await refusalOf(plane.tasks.create(anna, draft(), { key: 'k1', digest: 'other' }))).toBe('idempotency_mismatch')
    expect((await plane.tasks.create(agentCaller('a1'), draft(), once)).task.task_id).toBe('TASK-002')
  })

  test('an agent has so many open tasks that it created and no more; operators and repeated requests are not counted', async () => {
    const plane = await taskPlane(await open(), { openTasksOfAgent: 3 })
    const a1 = agentCaller('a1')
    const once = { key: 'k', digest: 'd' }
    await plane.tasks.create(a1, draft(), once)
    const together = await Promise.all(Array.from({ length: 8 }, () => refusalOf(plane.tasks.create(a1, draft()))))
    expect(together.toSorted()).toEqual([...Array(2).fill('no refusal'), ...Array(6).fill('too_many')])
    await expect(plane.tasks.create(a1, draft({ depends_on: ['TASK-001'] }))).rejects.toThrow('agent a1 has created 3 tasks')
    expect((await plane.tasks.create(a1, draft(), once)).replayed).toBe(true)
    expect(await refusalOf(plane.tasks.create(agentCaller('b1'), draft()))).toBe('no refusal')
    for (let n = 0; n < 4; n += 1) expect(await refusalOf(plane.tasks.create(anna, draft()))).toBe('no refusal')
    await plane.tasks.cancel(anna, 'TASK-001', '')
    expect(await refusalOf(plane.tasks.createMany(a1, [draft(), draft()]))).toBe('too_many')
    expect(await plane.tasks.createMany(a1, [draft()])).toHaveLength(1)
    expect(await refusalOf(plane.tasks.create(a1, draft()))).toBe('too_many')
  })

  test.each(['newest', 'queue'] as const)('a search reads so many texts a page, %s first, and goes on behind them', async (order) => {
    const plane = await taskPlane(await open())
    await plane.tasks.create(anna, draft({ title: 'needle' }))
    await plane.context.store.write(function* () {
      const columns = tables().find(({ name }) => name === 'tasks')?.columns ?? []
      const values = columns.map((column) => ({ id: 'x', title: "'hay'", queue_at: 'queue_at - x' })[column] ?? column)
      const numbers = 'WITH RECURSIVE numbers(x) AS (SELECT 2 UNION ALL SELECT x + 1 FROM numbers WHERE x < 10001)'
      yield [`INSERT INTO tasks (${columns.join(', ')}) ${numbers} SELECT ${values.join(', ')} FROM tasks, numbers WHERE id = 1`]
    })
    const nothing = await plane.tasks.list(anna, query({ q: 'NEEDLE', order }))
    expect([nothing.tasks, nothing.next]).toEqual([[], 'TASK-002'])
    const found = await plane.tasks.list(anna, query({ q: 'needle', order, after: 'TASK-002' }))
    expect([found.tasks.map(({ task_id }) => task_id), found.next]).toEqual([['TASK-001'], null])
    const some = await plane.tasks.list(anna, query({ q: 'hay', order, limit: 2, brief: true }))
    expect(some.tasks.map(({ task_id }) => task_id)).toEqual(['TASK-10001', 'TASK-10000'])
    expect(some.next).toBe('TASK-10000')
  })

  test('many tasks are created all or none', async () => {
    const plane = await taskPlane(await open())
    const bad = [draft(), draft({ depends_on: ['TASK-099'] })]
    expect(await refusalOf(plane.tasks.createMany(anna, bad))).toBe('bad_request')
    expect(await plane.all('SELECT id FROM tasks')).toEqual([])
    const tasks = await plane.tasks.createMany(anna, [draft(), draft(), draft()])
    expect(tasks.map((task) => task.task_id)).toEqual(['TASK-001', 'TASK-002', 'TASK-003'])
    expect(await refusalOf(plane.tasks.createMany(anna, new Array(1_001).fill(draft())))).toBe('too_large')
  })

  test('an edit of an old version is refused, and of a running task only priority and labels change', async () => {
    const plane = await taskPlane(await open())
    await plane.addAgent('a1')
    await plane.tasks.create(anna, draft())
    expect(await plane.tasks.edit(anna, 'TASK-001', { title: 'first' }, 1)).toMatchObject({ title: 'first', version: 2 })
    expect(await refusalOf(plane.tasks.edit(anna, 'TASK-001', { title: 'second' }, 1))).toBe('version_conflict')
    await plane.mustClaim()
    expect(await refusalOf(plane.tasks.edit(anna, 'TASK-001', { title: 'second' }))).toBe('conflict')
    const edited = await plane.tasks.edit(anna, 'TASK-001', { priority: 'urgent', labels: ['x'] })
    expect(edited).toMatchObject({ title: 'first', priority: 'urgent', labels: ['x'], status: 'running' })
    expect((await plane.tasks.list(anna, query({ label: 'x' }))).tasks).toHaveLength(1)
  })

  test('an operator holds a task back and lets it go', async () => {
    const plane = await taskPlane(await open())
    await plane.addAgent('a1')
    await plane.tasks.create(anna, draft())
    expect(await plane.tasks.edit(anna, 'TASK-001', { blocked: true })).toMatchObject({ status: 'blocked', blocked_reason: 'operator' })
    expect(await plane.claim()).toBeUndefined()
    await plane.tasks.edit(anna, 'TASK-001', { blocked: false })
    expect((await plane.mustClaim()).task.task_id).toBe('TASK-001')
  })

  test('a released task waits for longer each time, and is dead when its attempts are used up', async () => {
    const plane = await taskPlane(await open(), { random: () => 0.999 })
    await plane.addAgent('a1')
    await plane.tasks.create(anna, draft({ max_attempts: 3 }))
    const waits: number[] = []
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      const claim = await plane.mustClaim()
      const task = await plane.tasks.release(runCaller(claim), 'TASK-001', { outcome: 'retry', error: `failure ${attempt}` })
      if (attempt < 3) waits.push(Date.parse(task.available_at) - plane.clock.at)
      expect(await plane.claim()).toBeUndefined()
      plane.clock.at = Date.parse(task.available_at)
    }
    expect(waits).toEqual([1_998, 3_996])
    expect(await plane.tasks.get(anna, 'TASK-001')).toMatchObject({ status: 'dead', error: 'failure 3', attempt: 3 })
    expect(await plane.tasks.retry(anna, 'TASK-001', '')).toMatchObject({ status: 'pending', error: null })
    expect((await plane.mustClaim()).attempt).toBe(4)
  })

  test('"now" returns a task at once and does not count; "failed" ends it', async () => {
    const plane = await taskPlane(await open())
    await plane.addAgent('a1')
    await plane.tasks.create(anna, draft({ max_attempts: 1 }))
    await plane.tasks.release(runCaller(await plane.mustClaim()), 'TASK-001', { outcome: 'now' })
    const task = await plane.tasks.release(runCaller(await plane.mustClaim()), 'TASK-001', { outcome: 'failed', error: 'no such jail' })
    expect(task).toMatchObject({ status: 'failed', error: 'no such jail' })
    expect(task.ended_at).not.toBeNull()
  })

  test('a cancelled task ends at once, or when its run hears of it', async () => {
    const plane = await taskPlane(await open())
    await plane.addAgent('a1')
    await plane.tasks.createMany(anna, [draft(), draft(), draft()])
    expect(await plane.tasks.cancel(anna, 'TASK-003', 'not needed')).toMatchObject({ status: 'cancelled', error: 'not needed' })
    const [first, second] = [runCaller(await plane.mustClaim()), runCaller(await plane.mustClaim())]
    expect(await refusalOf(plane.tasks.release(first, 'TASK-001', { outcome: 'cancelled' }))).toBe('conflict')
    await plane.tasks.cancel(anna, 'TASK-001', '')
    await plane.tasks.cancel(anna, 'TASK-002', '')
    expect(await plane.tasks.beat(first, 'TASK-001')).toMatchObject({ cancel_requested: true })
    expect(await plane.tasks.release(first, 'TASK-001', { outcome: 'retry' })).toMatchObject({
      status: 'cancelled',
      cancel_requested: false,
    })
    plane.clock.at += 61_000
    await plane.tasks.tick()
    expect(await plane.tasks.get(anna, 'TASK-002')).toMatchObject({ status: 'cancelled' })
    expect(await refusalOf(plane.tasks.beat(second, 'TASK-002'))).toBe('lease_lost')
    expect(await refusalOf(plane.tasks.cancel(anna, 'TASK-002', ''))).toBe('conflict')
  })

  test('a run that goes on after it was told of a cancel loses its lease all the same', async () => {
    const plane = await taskPlane(await open())
    await plane.addAgent('a1')
    await plane.tasks.create(anna, draft())
    const run = runCaller(await plane.mustClaim())
    plane.clock.at += 30_000
    await plane.tasks.cancel(anna, 'TASK-001', '')
    plane.clock.at += 1_000
    const told = await plane.tasks.beat(run, 'TASK-001')
    expect(Date.parse(told.lease_until) - plane.clock.at).toBe(60_000)
    plane.clock.at += 59_000
    expect(await plane.tasks.beat(run, 'TASK-001')).toEqual(told)
    plane.clock.at += 1_001
    expect(await refusalOf(plane.tasks.beat(run, 'TASK-001'))).toBe('lease_lost')
    await plane.tasks.tick()
    expect((await plane.tasks.get(anna, 'TASK-001')).status).toBe('cancelled')
  })

  test('an agent that says it failed fails its task, and the words of the seed complete it', async () => {
    const plane = await taskPlane(await open())
    await plane.addAgent('a1')
    await plane.tasks.createMany(anna, [draft(), draft(), draft()])
    await plane.complete(runCaller(await plane.mustClaim()), 'TASK-001', { status: 'failure', output: 'disk broken' })
    expect(await plane.tasks.get(anna, 'TASK-001')).toMatchObject({ status: 'failed', error: 'disk broken' })
    const seed = { kind: 'seed', id: 'shared-secret' } as const
    await plane.mustClaim()
    expect(await refusalOf(plane.complete(seed, 'TASK-002'))).toBe('lease_lost')
    await plane.complete(seed, 'TASK-003')
    expect(await plane.tasks.get(anna, 'TASK-003')).toMatchObject({ status: 'completed' })
    expect(await refusalOf(plane.complete(seed, 'TASK-003'))).toBe('conflict')
  })

  test.each(['newest', 'queue'] as const)(
    'a page of large tasks ends early, and the pages (%s) have each task once',
    async (order) => {
      const plane = await taskPlane(await open())
      const output = 'é'.repeat(1_000_000)
      for (let n = 0; n < 12; n += 1) {
        await plane.tasks.create(anna, draft())
        if (n % 3 === 0) await plane.complete(anna, `TASK-0${String(n + 1).padStart(2, '0')}`, { output })
      }
      const pages: number[] = []
      const seen: string[] = []
      for (let after: string | undefined; ; ) {
        const { tasks, next } = await plane.tasks.list(anna, query({ order, limit: 200, ...(after ? { after } : {}) }))
        pages.push(JSON.stringify(tasks).length)
        seen.push(...tasks.map(({ task_id }) => task_id))
        if (next === null) break
        after = next
      }
      expect(pages.length).toBeGreaterThan(1)
      expect(Math.max(...pages)).toBeLessThan(3_100_000)
      expect(seen.toSorted()).toEqual(Array.from({ length: 12 }, (_, n) => `TASK-0${String(n + 1).padStart(2, '0')}`))
      const brief = await plane.tasks.list(anna, query({ order, limit: 200, brief: true }))
      expect([brief.tasks.length, brief.next, brief.tasks.every(({ result }) => result === null)]).toEqual([12, null, true])
      const [whole] = (await plane.tasks.list(anna, query({ status: 'completed', limit: 1 }))).tasks
      expect(whole).toEqual(await plane.tasks.get(anna, 'TASK-010'))
    },
    30_000,
  )

  test('lists are filtered, paged in both orders and counted', async () => {
    const plane = await taskPlane(await open())
    const words = ['100% sure', 'a_b', 'axb', 'plain']
    for (const title of words) await plane.tasks.create(anna, draft({ title, priority: title === 'plain' ? 'urgent' : 'medium' }))
    await plane.tasks.create(anna, draft({ role: 'db-admin', labels: ['nightly'], parent_task_id: 'TASK-001' }))
    await plane.tasks.cancel(anna, 'TASK-002', '')
    const ids = async (fields: Parameters<typeof query>[0]) =>
      (await plane.tasks.list(anna, query(fields))).tasks.map((task) => task.task_id)
    expect(await ids({ q: '100%' })).toEqual(['TASK-001'])
    expect(await ids({ q: 'A_B' })).toEqual(['TASK-002'])
    expect(await ids({ open: true, role: 'sysadmin' })).toEqual(['TASK-004', 'TASK-003', 'TASK-001'])
    expect(await ids({ label: 'nightly', parent_task_id: 'TASK-001' })).toEqual(['TASK-005'])
    expect(await ids({ status: 'cancelled' })).toEqual(['TASK-002'])
    const first = await plane.tasks.list(anna, query({ limit: 2, order: 'queue', open: true, role: 'sysadmin' }))
    expect([first.tasks.map((task) => task.task_id), first.next]).toEqual([['TASK-004', 'TASK-001'], 'TASK-001'])
    expect(await ids({ limit: 2, order: 'queue', open: true, role: 'sysadmin', after: 'TASK-001' })).toEqual(['TASK-003'])
    const newest = await plane.tasks.list(anna, query({ limit: 3 }))
    expect([newest.next, newest.counts]).toEqual(['TASK-003', { pending: 4, cancelled: 1 }])
    expect(await ids({ limit: 3, after: 'TASK-003' })).toEqual(['TASK-002', 'TASK-001'])
  })
})
