import { expect, test } from 'bun:test'
import { type Claim, claimRequest } from '../../../src/control/contract/task-shapes.ts'
import { until } from '../../support/until.ts'
import { forEachEngine } from '../support/engines.ts'
import { agentCaller, anna, draft, query, refusalOf, runCaller, taskPlane } from '../support/task-plane.ts'

forEachEngine('claims', (open) => {
  test('only the agent itself claims, only for its role, and only when it is known', async () => {
    const plane = await taskPlane(await open())
    await plane.addAgent('a1')
    await plane.tasks.create(anna, draft())
    const request = claimRequest.parse({ role: 'sysadmin', agent_id: 'a1' })
    const { signal } = new AbortController()
    expect(await refusalOf(plane.tasks.claim(agentCaller('a2'), request, signal))).toBe('forbidden')
    expect(await refusalOf(plane.tasks.claim({ kind: 'seed', id: 'shared-secret' }, request, signal))).toBe('forbidden')
    expect(await refusalOf(plane.claim('a1', { role: 'db-admin' }))).toBe('forbidden')
    expect(await refusalOf(plane.claim('unknown'))).toBe('not_found')
    expect(await refusalOf(plane.tasks.claim(runCaller(await plane.mustClaim()), request, signal))).toBe('forbidden')
  })

  test('the most urgent comes first, and a task of low priority comes up as it ages', async () => {
    const plane = await taskPlane(await open())
    await plane.addAgent('a1')
    await plane.tasks.create(anna, draft({ title: 'old and low', priority: 'low' }))
    plane.clock.at += 90 * 60_000
    for (const priority of ['medium', 'urgent', 'high'] as const) await plane.tasks.create(anna, draft({ title: priority, priority }))
    plane.clock.at += 40 * 60_000
    await plane.tasks.create(anna, draft({ title: 'new and medium' }))
    const titles: string[] = []
    for (let count = 0; count < 5; count += 1) titles.push((await plane.mustClaim()).task.title)
    expect(titles).toEqual(['urgent', 'high', 'old and low', 'medium', 'new and medium'])
  })

  test('a task is not claimed before its time', async () => {
    const plane = await taskPlane(await open())
    await plane.addAgent('a1')
    await plane.tasks.create(anna, draft({ priority: 'urgent', available_at: new Date(plane.clock.at + 1_000).toISOString() }))
    expect(await plane.claim()).toBeUndefined()
    plane.clock.at += 1_000
    expect((await plane.mustClaim()).task.task_id).toBe('TASK-001')
  })

  test('a task for one agent is claimed by that agent alone, and labels choose', async () => {
    const plane = await taskPlane(await open())
    await plane.addAgent('a1')
    await plane.addAgent('a2')
    await plane.tasks.create(anna, draft({ agent_id: 'a2' }))
    await plane.tasks.create(anna, draft({ labels: ['gpu', 'big'] }))
    expect((await plane.mustClaim('a1', { labels: ['gpu', 'big'] })).task.task_id).toBe('TASK-002')
    expect(await plane.claim('a1')).toBeUndefined()
    expect(await refusalOf(plane.complete(agentCaller('a1'), 'TASK-001'))).toBe('forbidden')
    expect(await plane.claim('a2', { labels: ['gpu'] })).toBeUndefined()
    await plane.tasks.create(anna, draft({ labels: ['gpu'] }))
    expect((await plane.mustClaim('a1', { labels: ['gpu', 'gpu'] })).task.task_id).toBe('TASK-003')
    expect((await plane.mustClaim('a2')).task.task_id).toBe('TASK-001')
  })

  test('labels know where their task stands in the queue, whatever happens to it', async () => {
    const plane = await taskPlane(await open())
    for (const id of ['a1', 'a2']) await plane.addAgent(id)
    const labels = ['gpu']
    const later = new Date(plane.clock.at + 60_000).toISOString()
    for (const fields of [{}, { available_at: later }, { agent_id: 'a2' }, { depends_on: ['TASK-001'] }, { role: 'db-admin' }, {}])
      await plane.tasks.create(anna, draft({ labels, ...fields }))
    const places = async () => {
      const rows = await plane.all(
        'SELECT id, status, role, agent_id, tasks.queue_at AS place, queue, labels.queue_at FROM tasks JOIN labels ON task_id = id ORDER BY id',
      )
      for (const { status, role, agent_id, place, ...found } of rows) {
        const queue = agent_id === null ? role : `${role} ${agent_id}`
        expect({ ...found, queue_at: Number(found.queue_at) }).toEqual({
          ...{ id: found.id ?? 0, queue: status === 'pending' ? queue : null },
          queue_at: Number(place),
        })
      }
      return rows.map(({ queue }) => queue)
    }
    expect(await places()).toEqual(['sysadmin', 'sysadmin', 'sysadmin a2', null, 'db-admin', 'sysadmin'])
    const first = await plane.mustClaim('a1', { labels })
    expect(first.task.task_id).toBe('TASK-001')
    await plane.tasks.edit(anna, 'TASK-005', { role: 'sysadmin', agent_id: 'a1', labels: ['gpu', 'big'] })
    await plane.tasks.edit(anna, 'TASK-006', { labels: [] })
    expect(await places()).toEqual([null, 'sysadmin', 'sysadmin a2', null, 'sysadmin a1', 'sysadmin a1'])
    await plane.complete(runCaller(first), 'TASK-001')
    await plane.tasks.cancel(anna, 'TASK-003', '')
    plane.clock.at += 60_001
    await plane.tasks.tick()
    expect(await places()).toEqual([null, 'sysadmin', null, 'sysadmin', 'sysadmin a1', 'sysadmin a1'])
    const claimed = [await plane.mustClaim('a1', { labels: ['big', 'gpu'] }), await plane.mustClaim('a2', { labels })]
    expect(claimed.map(({ task }) => task.task_id)).toEqual(['TASK-005', 'TASK-002'])
    await plane.tasks.release(runCaller(claimed[1] ?? first, 'a2'), 'TASK-002', { outcome: 'now' })
    const both = await Promise.all([plane.claim('a1', { labels }), plane.claim('a2', { labels }), plane.claim('a1', { labels })])
    expect(both.flatMap((one) => one?.task.task_id ?? []).toSorted()).toEqual(['TASK-002', 'TASK-004'])
    await places()
  })

  test('claims for many roles leave nothing behind: not those that were refused, and not those whose wait is over', async () => {
    const store = await open()
    const listening = new Set<string>()
    const listen: typeof store.listen = (topic, heard) => {
      const key = `${topic} ${crypto.randomUUID()}`
      const stop = store.listen(topic, heard)
      listening.add(key)
      return () => {
        listening.delete(key)
        stop()
      }
    }
    const plane = await taskPlane({ ...store, listen })
    await plane.addAgent('a1')
    const before = listening.size
    for (let n = 0; n < 20; n += 1) expect(await refusalOf(plane.claim('a1', { role: `role-${n}`, wait_ms: 10 }))).toBe('forbidden')
    expect(await plane.claim('a1', { wait_ms: 10 })).toBeUndefined()
    const [one, other] = [plane.claim('a1', { wait_ms: 25_000 }), plane.claim('a1', { wait_ms: 10 })]
    expect(await other).toBeUndefined()
    await plane.tasks.create(anna, draft())
    expect((await one)?.task.task_id).toBe('TASK-001')
    expect(listening.size).toBe(before)
  })

  test('a paused agent and a task without budget of its own get nothing', async () => {
    const plane = await taskPlane(await open())
    await plane.addAgent('a1')
    await plane.tasks.create(anna, draft({ budget_tokens: 0 }))
    expect(await plane.claim()).toBeUndefined()
    expect(await plane.tasks.get(anna, 'TASK-001')).toMatchObject({ status: 'budget_blocked' })
    expect(await plane.tasks.edit(anna, 'TASK-001', { budget_tokens: 10 })).toMatchObject({ status: 'pending' })
    await plane.pauseAgent('a1', true)
    expect(await plane.claim()).toBeUndefined()
    await plane.pauseAgent('a1', false)
    expect((await plane.mustClaim()).task.task_id).toBe('TASK-001')
  })

  test('one claim puts a hundred tasks without budget of their own aside, and the next one goes on', async () => {
    const plane = await taskPlane(await open())
    await plane.addAgent('a1')
    await plane.tasks.createMany(anna, [...Array.from({ length: 101 }, () => draft({ budget_tokens: 0 })), draft({ title: 'behind them' })])
    expect(await plane.claim()).toBeUndefined()
    expect((await plane.tasks.list(anna, query())).counts).toEqual({ budget_blocked: 100, pending: 2 })
    expect((await plane.mustClaim()).task.title).toBe('behind them')
  })

  test('an expired lease is claimed again without anybody sweeping, as a failure', async () => {
    const plane = await taskPlane(await open())
    await plane.addAgent('a1')
    await plane.tasks.create(anna, draft({ max_attempts: 2 }))
    const first = await plane.mustClaim('a1', { lease_s: 5 })
    expect(Date.parse(first.lease_until) - plane.clock.at).toBe(5_000)
    plane.clock.at += 4_000
    expect(Date.parse((await plane.tasks.beat(runCaller(first), 'TASK-001')).lease_until) - plane.clock.at).toBe(5_000)
    plane.clock.at += 4_999
    expect(await plane.claim()).toBeUndefined()
    plane.clock.at += 1
    expect(await plane.mustClaim()).toMatchObject({ attempt: 2, run_id: 'RUN-002' })
    plane.clock.at += 60_000
    await plane.tasks.tick()
    expect(await plane.tasks.get(anna, 'TASK-001')).toMatchObject({ status: 'dead', error: 'the lease of RUN-002 expired without a beat' })
    expect((await plane.all('SELECT state FROM runs ORDER BY id')).map((row) => row.state)).toEqual(['lost', 'lost'])
  })

  test('a clock that is set forward or back by ten minutes loses no task and no lease for long', async () => {
    const plane = await taskPlane(await open())
    await plane.addAgent('a1')
    await plane.tasks.createMany(anna, [draft(), draft()])
    const ahead = runCaller(await plane.mustClaim())
    plane.clock.at += 600_000
    await plane.tasks.tick()
    expect(await refusalOf(plane.tasks.beat(ahead, 'TASK-001'))).toBe('lease_lost')
    const alive = runCaller(await plane.mustClaim())
    await plane.mustClaim()
    plane.clock.at -= 600_000
    await plane.tasks.tick()
    const beat = await plane.tasks.beat(alive, alive.kind === 'run' ? alive.taskId : '')
    expect(Date.parse(beat.lease_until) - plane.clock.at).toBe(60_000)
    plane.clock.at += 59_000
    expect(await plane.claim()).toBeUndefined()
    plane.clock.at += 1_000
    expect([(await plane.mustClaim()).attempt, (await plane.mustClaim()).attempt].sort()).toEqual([2, 3])
    const { task } = await plane.tasks.create(anna, draft())
    plane.clock.at -= 600_000
    expect((await plane.mustClaim()).task.status).toBe('running')
    expect(task.status).toBe('pending')
  })

  test('a claim waits, and a new task wakes it', async () => {
    const plane = await taskPlane(await open(), { now: Date.now })
    await plane.addAgent('a1')
    // Without the announcement each takes the second until the next look; on a busy machine the first may too.
    const times: number[] = []
    while (times.length < 5 && !times.some((took) => took < 500)) {
      const waiting = plane.claim('a1', { wait_ms: 25_000 })
      await Bun.sleep(30)
      const begun = performance.now()
      const { task } = await plane.tasks.create(anna, draft())
      expect((await waiting)?.task.task_id).toBe(task.task_id)
      times.push(performance.now() - begun)
    }
    expect(Math.min(...times)).toBeLessThan(500)
  })

  test('a task behind its back-off wakes a waiting claim when its time comes', async () => {
    const plane = await taskPlane(await open(), { now: Date.now })
    await plane.addAgent('a1')
    await plane.tasks.create(anna, draft({ available_at: new Date(Date.now() + 300).toISOString() }))
    expect((await plane.claim('a1', { wait_ms: 25_000 }))?.task.task_id).toBe('TASK-001')
  })

  test('nothing is claimed for a caller that has gone, also when it goes while it waits', async () => {
    const plane = await taskPlane(await open(), { now: Date.now })
    await plane.addAgent('a1')
    const caller = new AbortController()
    const request = claimRequest.parse({ role: 'sysadmin', agent_id: 'a1', wait_ms: 25_000 })
    const waiting = plane.tasks.claim(agentCaller('a1'), request, caller.signal)
    await Bun.sleep(30)
    caller.abort()
    expect(await waiting).toBeUndefined()
    await plane.tasks.create(anna, draft())
    expect(await plane.tasks.claim(agentCaller('a1'), request, caller.signal)).toBeUndefined()
    expect(await plane.all('SELECT id FROM runs')).toEqual([])
    const late = new AbortController()
    const tried = plane.tasks.claim(agentCaller('a1'), request, late.signal)
    queueMicrotask(() => late.abort())
    expect(await tried).toBeUndefined()
    expect(await plane.tasks.get(anna, 'TASK-001')).toMatchObject({ status: 'pending' })
    expect((await plane.all("SELECT id FROM runs WHERE state = 'running'")).length).toBe(0)
  })

  test('200 workers wait for 100 tasks: each task goes to one of them, and the others go on waiting', async () => {
    const plane = await taskPlane(await open(), { now: Date.now })
    for (let at = 0; at < 200; at += 1) await plane.addAgent(`w${at}`)
    const writes = plane.countWrites()
    const over = new AbortController()
    const claims: Claim[] = []
    const waiting = Array.from({ length: 200 }, async (_, at) => {
      const request = claimRequest.parse({ role: 'sysadmin', agent_id: `w${at}`, wait_ms: 25_000 })
      const claim = await plane.tasks.claim(agentCaller(`w${at}`), request, over.signal)
      if (claim) claims.push(claim)
    })
    // Each has asked once, and waits.
    await until(() => writes() >= 200)
    const before = writes()
    await plane.tasks.createMany(
      anna,
      Array.from({ length: 100 }, () => draft()),
    )
    await until(() => claims.length >= 100)
    over.abort()
    await Promise.all(waiting)
    expect(new Set(claims.map((claim) => claim.task.task_id)).size).toBe(100)
    expect(claims).toHaveLength(100)
    // One write a task, a few tries that came too late, and those of the slow look.
    expect(writes() - before).toBeLessThan(200)
  })

  test('a worker that waits comes back when its agent is woken, and goes on when it is resumed', async () => {
    const plane = await taskPlane(await open(), { now: Date.now })
    await plane.addAgent('a1')
    await plane.addAgent('a2')
    await plane.pauseAgent('a2', true)
    const [woken, paused] = [plane.claim('a1', { wait_ms: 25_000 }), plane.claim('a2', { wait_ms: 25_000 })]
    await Bun.sleep(50)
    const begun = performance.now()
    await plane.wakeAgent('a1')
    expect(await woken).toBeUndefined()
    await plane.tasks.create(anna, draft())
    await Bun.sleep(50)
    await plane.pauseAgent('a2', false)
    expect((await paused)?.task.task_id).toBe('TASK-001')
    expect(performance.now() - begun).toBeLessThan(20_000)
  })
})
