/** A worker and a control plane in one process: from the claim to the report, with a shell script as the runner. */

import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { needs } from '../../support/needs.ts'
import { until } from '../../support/until.ts'
import { planeAndPlaceOfEachTest, result } from './plane-and-place.ts'
import { anna } from './plane-port.ts'

const given = planeAndPlaceOfEachTest()

describe.if(needs('bwrap'))('a worker', () => {
  test('carries out a task, reports it, keeps its session, and brings its changes for a review', async () => {
    const { plane, place } = given()
    const port = await plane.agent()
    const task = await plane.add({ title: 'Check jail', context: { jail: 'db' } })
    const script = `cat > task.json; echo changed > notes.md; echo '{"type":"usage","tokens":420}'; ${result({ output: 'running', skill: 'jail-status' })}`
    expect(await place.worker(port, script, { once: true }).run()).toBe('completed')

    expect(await plane.task(task.task_id)).toMatchObject({ status: 'completed', tokens_used: 420 })
    expect((await plane.task(task.task_id)).result).toMatchObject({ status: 'success', skill_executed: 'jail-status', tokens_used: 420 })
    const run = await plane.run()
    expect(run).toMatchObject({ state: 'completed', changes: 'waiting', skill: 'jail-status' })
    expect(run.artifacts.map(({ name }) => name).sort()).toEqual(['changes.patch', 'output.txt'])
    expect(await plane.log()).toContain('"type":"usage"')
    expect(place.log()).toContain('"type":"usage"')
    expect(JSON.parse(place.sessions()[0] ?? '')).toMatchObject({
      task: 'Check jail',
      skill: 'jail-status',
      outcome: 'running',
      tokens_used: 420,
    })
    expect(await plane.runs.sessions(anna, 'a1', 10)).toHaveLength(1)

    expect(readFileSync(join(place.workspace, 'notes.md'), 'utf8')).toBe('hello\n')
    const { store } = await place.host.changes()
    const [set, ...others] = store.list()
    expect(others).toEqual([])
    expect(set).toMatchObject({ state: 'pending', about: { run: 'RUN-001', call: task.task_id }, count: 2 })
    expect(await store.apply({ id: set?.id ?? '' })).toMatchObject({ ok: true })
    expect(readFileSync(join(place.workspace, 'notes.md'), 'utf8')).toBe('changed\n')
    const seen = JSON.parse(readFileSync(join(place.workspace, 'task.json'), 'utf8'))
    expect(seen).toMatchObject({ run_id: 'RUN-001', task: { task_id: task.task_id, context: { jail: 'db' } }, workspace: place.workspace })
  })

  test('gives a task whose runner fails back with the reason, and escalates the last attempt', async () => {
    const { plane, place } = given()
    const port = await plane.agent()
    const { task_id } = await plane.add({ title: 'Vacuum', max_attempts: 2 })
    const script = 'echo "database locked" >&2; echo x > new.txt; exit 3'
    expect(await place.worker(port, script, { once: true }).run()).toBe('failed')
    expect(await plane.task(task_id)).toMatchObject({
      status: 'pending',
      attempt: 1,
      error: expect.stringContaining('exit code 3: database locked'),
    })
    await plane.tasks.edit(anna, task_id, { available_at: new Date().toISOString() })
    expect(await place.worker(port, script, { once: true }).run()).toBe('escalated')
    expect(await plane.task(task_id)).toMatchObject({ status: 'dead', attempt: 2 })
    const { tasks } = await plane.tasks.list(anna, { role: 'orchestrator', limit: 10, order: 'newest' })
    expect(tasks).toMatchObject([{ parent_task_id: task_id, labels: ['escalation'], title: expect.stringContaining('database locked') }])
    expect((await place.host.changes()).store.list()).toEqual([])
    expect(place.sessions().map((line) => JSON.parse(line).outcome)).toEqual(['failed', 'failed'])
  })

  test('escalates a task that no skill of the library matches, without running anything', async () => {
    const { plane, place } = given()
    const { task_id } = await plane.add({ title: 'Paint the fence' })
    const skills = { exists: true, match: () => undefined, index: () => '' }
    expect(await place.worker(await plane.agent(), result({}), { once: true, skills }).run()).toBe('escalated')
    expect(await plane.task(task_id)).toMatchObject({ status: 'failed', error: expect.stringContaining('no skill') })
    expect(place.log()).not.toContain('"result"')
  })

  test('tells the runner the skill that matches, and the session before', async () => {
    const { plane, place } = given()
    const port = await plane.agent()
    const skills = { exists: true, match: () => ({ name: 'jail-status', content: 'Run bastille list.' }), index: () => 'jail-status: look' }
    for (const title of ['One', 'Two']) {
      await plane.add({ title })
      expect(await place.worker(port, `cat >&2; ${result({ output: `${title} ok` })}`, { once: true, skills }).run()).toBe('completed')
    }
    const log = await plane.log('RUN-002')
    expect(log).toContain('Run bastille list.')
    expect(log).toContain('One ok')
    expect(log).toContain('"skill_index":"jail-status: look"')
    expect(await plane.run('RUN-002')).toMatchObject({ skill: 'jail-status', changes: 'none' })
  })

  test('stops the runner of a cancelled task, and keeps nothing of it', async () => {
    const { plane, place } = given()
    const { task_id } = await plane.add()
    const worker = place.worker(await plane.agent(), 'echo x > new.txt; echo begun; sleep 60', { once: true, leaseSeconds: 3 }).run()
    await until(() => place.log().includes('begun'))
    await plane.tasks.cancel(anna, task_id, 'not needed')
    expect(await worker).toBe('cancelled')
    expect(await plane.task(task_id)).toMatchObject({ status: 'cancelled' })
    expect((await place.host.changes()).store.list()).toEqual([])
  })

  test('gives the run back when it is stopped, and the attempt does not count', async () => {
    const { plane, place } = given()
    const { task_id } = await plane.add()
    const worker = place.worker(await plane.agent(), 'echo begun; sleep 60')
    const end = worker.run()
    await until(() => place.log().includes('begun'))
    worker.stop()
    expect(await end).toBe('stopped')
    expect(await plane.task(task_id)).toMatchObject({ status: 'pending', lease_until: null })
    expect((await plane.run()).state).toBe('released')
  })

  test('ends at once when it is stopped twice', async () => {
    const { plane, place } = given()
    await plane.add()
    const worker = place.worker(await plane.agent(), 'trap "" TERM; echo begun; while :; do sleep 0.1; done', { graceMs: 60_000 })
    const end = worker.run()
    await until(() => place.log().includes('begun'))
    const began = performance.now()
    worker.stop()
    worker.stop()
    expect(await end).toBe('stopped')
    expect(performance.now() - began).toBeLessThan(30_000)
  })

  test('a stop while it waits for a task ends the wait', async () => {
    const { plane, place } = given()
    const worker = place.worker(await plane.agent(), 'true', { waitMs: 20_000 })
    const end = worker.run()
    await until(() => plane.line.calls.includes('claim'))
    worker.stop()
    expect(await end).toBe('stopped')
  })

  test('writes nothing any more when another run has its task, and drops what was made', async () => {
    const { plane, place } = given()
    const { task_id } = await plane.add()
    const worker = place.worker(await plane.agent(), `echo x > new.txt; echo begun; sleep 1.5; ${result({})}`, {
      once: true,
      leaseSeconds: 1,
    })
    const end = worker.run()
    await until(() => place.log().includes('begun'))
    plane.line.cut = true
    await Bun.sleep(1_100)
    plane.line.cut = false
    const other = await plane.agent('a2')
    const claim = await other.claim({ role: 'sysadmin', agent_id: 'a2', wait_ms: 20_000, labels: [] }, new AbortController().signal)
    expect(claim).toMatchObject({ run_id: 'RUN-002', task: { task_id } })
    expect(await end).toBe('lost')
    expect(await plane.task(task_id)).toMatchObject({ status: 'running', run_id: 'RUN-002' })
    expect(await plane.run()).toMatchObject({ state: 'lost', changes: null, manifest: null, artifacts: [] })
    expect((await place.host.changes()).store.list()).toEqual([])
    expect(place.sessions()).toEqual([])
  })

  test('goes on through a broken connection that comes back within the lease', async () => {
    const { plane, place } = given()
    const { task_id } = await plane.add()
    const end = place.worker(await plane.agent(), `echo begun; sleep 0.5; ${result({})}`, { once: true, leaseSeconds: 6 }).run()
    await until(() => place.log().includes('begun'))
    plane.line.cut = true
    await Bun.sleep(1_200)
    plane.line.cut = false
    expect(await end).toBe('completed')
    expect(await plane.task(task_id)).toMatchObject({ status: 'completed', attempt: 1 })
    expect(await plane.log()).toContain('begun')
  })

  test('a revoked key ends the worker with a sentence', async () => {
    const { plane, place } = given()
    const port = await plane.agent()
    await plane.fleet.rotateKey(anna, 'a1')
    await expect(place.worker(port, 'true').run()).rejects.toThrow(/refuses the agent "a1".*CONTROLPLANE_API_KEY.*control key rotate a1/)
  })

  test('a paused agent claims nothing until it is resumed', async () => {
    const { plane, place } = given()
    const port = await plane.agent()
    await plane.fleet.pause(anna, 'a1', 'holiday')
    await plane.add()
    const worker = place.worker(port, result({}))
    const end = worker.run()
    await until(() => place.said.some((line) => line.includes('is paused')))
    await Bun.sleep(200)
    expect(plane.line.calls).not.toContain('claim')
    await plane.fleet.resume(anna, 'a1')
    await until(() => place.said.some((line) => line.includes('completed')))
    worker.stop()
    expect(await end).toBe('stopped')
  })

  test('says who it is, and tells once what a person did with its changes', async () => {
    const { plane, place } = given()
    const port = await plane.agent()
    await plane.add()
    await place.worker(port, `echo x > new.txt; ${result({})}`, { once: true, facts: { version: '1.2.3' } }).run()
    expect((await plane.fleet.get(anna, 'a1')).worker).toMatchObject({ pid: process.pid, runner: 'command', version: '1.2.3' })
    const { store } = await place.host.changes()
    await store.drop(store.list()[0]?.id ?? '')
    const line = { cut: true }
    const deliver: typeof port.deliver = async (...delivery) => {
      if (!line.cut) return port.deliver(...delivery)
      line.cut = false
      throw new Error('ECONNRESET')
    }
    await place.worker({ ...port, deliver }, 'true', { once: true }).run()
    expect((await plane.run()).changes).toBe('dropped')
    plane.line.calls.length = 0
    await place.worker(port, 'true', { once: true }).run()
    expect(plane.line.calls).not.toContain('deliver by agent')
  }, 60_000)
})
