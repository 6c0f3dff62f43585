/** A worker and a control plane in one process: from the claim to the report, with a shell script as the runner. */

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PlaneRefusal } from '../../../src/control/contract/plane-refusal.ts'
import { commandRunner } from '../../../src/control/runners/command-runner.ts'
import { needs } from '../../support/needs.ts'
import { until } from '../../support/until.ts'
import { sleeperOf, uniqueSeconds } from '../support/sleeper.ts'
import { anna, type TestPlane, testPlane } from './plane-port.ts'
import { type WorkerPlace, workerPlace } from './worker-place.ts'

const state: { plane?: TestPlane; place?: WorkerPlace } = {}
beforeEach(async () => {
  state.plane = await testPlane()
  state.place = workerPlace()
})
afterEach(async () => {
  await state.place?.close()
  await state.plane?.close()
})

function given(): { readonly plane: TestPlane; readonly place: WorkerPlace } {
  if (!state.plane || !state.place) throw new Error('not open')
  return { plane: state.plane, place: state.place }
}

const result = (fields: object) => `echo '${JSON.stringify({ type: 'result', ok: true, output: 'done', ...fields })}'`

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
    const skills = { isThere: true, match: () => undefined, index: () => '' }
    expect(await place.worker(await plane.agent(), result({}), { once: true, skills }).run()).toBe('escalated')
    expect(await plane.task(task_id)).toMatchObject({ status: 'failed', error: expect.stringContaining('no skill') })
    expect(place.log()).not.toContain('"result"')
  })

  test('tells the runner the skill that matches, and the session before', async () => {
    const { plane, place } = given()
    const port = await plane.agent()
    const skills = {
      isThere: true,
      match: () => ({ name: 'jail-status', content: 'Run bastille list.' }),
      index: () => 'jail-status: look',
    }
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

  test.each(['stop', 'cancel', 'loss of the lease'])(
    'a %s while the workspace is copied ends the copy, which leaves nothing behind',
    async (why) => {
      const { plane, place } = given()
      const port = await plane.agent()
      const { task_id } = await plane.add()
      const seconds = uniqueSeconds()
      using _ = slowCopies(place.dir, seconds)
      const worker = place.worker(port, 'echo begun', { once: true, leaseSeconds: 2, graceMs: 60_000 })
      const end = worker.run()
      await until(() => sleeperOf(seconds))
      expect(half(place.dir)).toHaveLength(1)
      if (why === 'stop') worker.stop()
      else if (why === 'cancel') await plane.tasks.cancel(anna, task_id, 'not needed')
      else plane.line.cut = true
      expect(await end).toBe(why === 'stop' ? 'released' : why === 'cancel' ? 'cancelled' : 'lost')
      expect([sleeperOf(seconds), half(place.dir)]).toEqual([undefined, []])
      expect(place.log()).not.toContain('begun')
      if (why === 'stop') expect(await plane.task(task_id)).toMatchObject({ status: 'pending', attempt: 1, error: null })
    },
  )

  test('what was decided about a task is asked again as long as the lease lasts, and the runner begins with it', async () => {
    const { plane, place } = given()
    const port = await plane.agent()
    const { task_id } = await plane.add()
    const line = { fails: 2 }
    const decided = { approval_id: 'APPR-007', operation: 'merge', state: 'approved', note: 'go' }
    const run = (token: string) => ({
      ...port.run(token),
      approvals: async () => {
        if (line.fails-- > 0) throw new Error('ECONNRESET')
        return [decided] as never
      },
    })
    expect(await place.worker({ ...port, run }, `cat >&2; ${result({})}`, { once: true }).run()).toBe('completed')
    expect(await plane.log()).toContain('An operator decided about \\"merge\\" (APPR-007): approved')
    await plane.add({ title: 'refused' })
    const refuses = (token: string) => ({
      ...port.run(token),
      approvals: () => Promise.reject(new PlaneRefusal('too_large', 'the approvals are gone')),
    })
    expect(await place.worker({ ...port, run: refuses }, 'echo begun', { once: true }).run()).toBe('failed')
    expect(await plane.task('TASK-002')).toMatchObject({ status: 'pending', error: 'the approvals are gone' })
    expect(task_id).toBe('TASK-001')
    expect(await plane.log('RUN-002')).not.toContain('begun')
  })

  test('a stop while the approvals cannot be read gives the task back', async () => {
    const { plane, place } = given()
    const port = await plane.agent()
    const { task_id } = await plane.add()
    const asked = { times: 0 }
    const approvals = () => {
      asked.times += 1
      return Promise.reject(new Error('ECONNRESET'))
    }
    const run = (token: string) => ({ ...port.run(token), approvals })
    const worker = place.worker({ ...port, run }, 'echo begun', { once: true })
    const end = worker.run()
    await until(() => asked.times > 0)
    worker.stop()
    expect(await end).toBe('released')
    expect(await plane.task(task_id)).toMatchObject({ status: 'pending' })
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

  test('a task that waits for an operator goes on in the same copy and the same home, without a lease meanwhile', async () => {
    const { plane, place } = given()
    const port = await plane.agent()
    const { task_id } = await plane.add()
    const tokens: string[] = []
    const run = (token: string) => {
      tokens.push(token)
      return port.run(token)
    }
    const script = `grep -q '"resumes":true' && { cat "$HOME/memory"; ${result({ output: 'merged' })}; exit; }
      echo half > half.txt; echo 'remembered' > "$HOME/memory"; echo begun; sleep 60`
    const worker = place.worker({ ...port, run }, script, { leaseSeconds: 3 })
    const end = worker.run()
    await until(() => place.log().includes('begun'))
    const ask = { event_type: 'approval_request', agent_id: 'a1', task_id, operation: 'merge', reasoning: '', estimated_tokens: 0 } as const
    const { approval_id } = await port.run(tokens[0] ?? '').activity(ask)
    await until(() => place.said.some((line) => line.includes('waiting')))
    expect(await plane.task(task_id)).toMatchObject({ status: 'awaiting_approval', lease_until: null })
    expect((await plane.run()).state).toBe('waiting')
    await plane.approvals.decide(anna, approval_id ?? '', { decision: 'approve', note: '' })
    await until(() => place.said.some((line) => line.includes('completed')))
    worker.stop()
    expect(await end).toBe('stopped')
    expect(await plane.task(task_id)).toMatchObject({ status: 'completed', result: { output: expect.stringContaining('merged') } })
    expect(await plane.log('RUN-002')).toContain('remembered')
    const { store } = await place.host.changes()
    expect(store.list().map(({ about, count }) => ({ run: about.run, count }))).toEqual([{ run: 'RUN-002', count: 1 }])
  })

  describe('a later worker, after a run that asked an operator and then failed', () => {
    const script = `grep -q '"resumes":true' && { cat half.txt "$HOME/memory"; ${result({ output: 'merged' })}; exit; }
      echo half > half.txt; echo remembered > "$HOME/memory"; echo begun; exit 1`

    /** The first worker has ended, and the operator has said yes. */
    async function waited() {
      const { plane, place } = given()
      const port = await plane.agent()
      const { task_id } = await plane.add()
      const ask = {
        event_type: 'approval_request',
        agent_id: 'a1',
        task_id,
        operation: 'merge',
        reasoning: '',
        estimated_tokens: 0,
      } as const
      const run = (token: string): ReturnType<typeof port.run> => {
        const own = port.run(token)
        // It asks before its release says that it failed.
        return { ...own, release: async (...request) => own.activity(ask).then(() => own.release(...request)) }
      }
      expect(await place.worker({ ...port, run }, script, { once: true }).run()).toBe('waiting')
      expect(await plane.task(task_id)).toMatchObject({ status: 'awaiting_approval' })
      expect(place.sessions().map((line) => JSON.parse(line).outcome)).toEqual(['waiting'])
      return { plane, place, port, task_id, decide: () => plane.approvals.decide(anna, 'APPR-001', { decision: 'approve', note: '' }) }
    }
    const parked = (place: WorkerPlace) => readdirSync(join(place.dir, 'cache/copies')).filter((name) => name.startsWith('waiting-'))

    test('begins anew when somebody else had the task meanwhile', async () => {
      const { plane, place, port, task_id, decide } = await waited()
      await decide()
      const claim = await port.claim({ role: 'sysadmin', agent_id: 'a1', wait_ms: 0, labels: [] }, new AbortController().signal)
      await port.run(claim?.run_token ?? '').release(task_id, { outcome: 'now' })
      expect(await place.worker(port, script, { once: true }).run()).toBe('failed')
      expect(await plane.log('RUN-003')).not.toContain('remembered')
      expect(parked(place)).toEqual([])
    })

    test('does not take what another runner remembers for its own, but goes on with the files', async () => {
      const { plane, place, port, decide } = await waited()
      await decide()
      const runner = {
        name: 'aider',
        runner: { ...commandRunner(['/bin/sh', '-c', 'cat > seen; cat half.txt']), name: 'aider' },
        path: '/bin/sh',
      } as const
      expect(await place.worker(port, '', { once: true, runner }).run()).toBe('completed')
      expect((await plane.task('TASK-001')).result).toMatchObject({ output: expect.stringContaining('half') })
      const { store } = await place.host.changes()
      const seen = Buffer.from(store.show(store.list()[0]?.id ?? '')?.read('seen', 'after', 100_000) ?? []).toString()
      expect(seen).toContain('"resumes":false')
      expect(seen).toContain('The current folder is as it left it')
    })

    test('has its copy again after it was stopped while it began', async () => {
      const { place, port, decide } = await waited()
      await decide()
      const stopped = { again: false }
      const run = (token: string) => ({
        ...port.run(token),
        approvals: async () => {
          if (!stopped.again) worker.stop()
          return []
        },
      })
      const worker = place.worker({ ...port, run }, script)
      expect(await worker.run()).toBe('stopped')
      expect(parked(place)).toEqual(['waiting-TASK-001'])
      expect(await place.worker(port, script, { once: true }).run()).toBe('completed')
      expect(parked(place)).toEqual([])
    })

    test('removes the copy when the task has ended', async () => {
      const { plane, place, port, task_id } = await waited()
      await plane.fleet.pause(anna, 'a1', 'only its report')
      await place.worker(port, '', { once: true }).run()
      expect(parked(place)).toEqual(['waiting-TASK-001'])
      await plane.tasks.cancel(anna, task_id, '')
      await place.worker(port, '', { once: true }).run()
      expect(parked(place)).toEqual([])
    })
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

/** Until it is disposed every copy writes half a file and then waits. */
function slowCopies(dir: string, seconds: number): Disposable {
  const [bin, path] = [join(dir, 'bin'), process.env.PATH]
  mkdirSync(bin)
  writeFileSync(join(bin, 'cp'), `#!/bin/sh\nfor last; do :; done\necho half > "$last/half"\nexec sleep ${seconds}\n`, { mode: 0o755 })
  process.env.PATH = `${bin}:${path}`
  return {
    [Symbol.dispose]() {
      process.env.PATH = path
    },
  }
}

/** What lies in the folders of the copies. */
const half = (dir: string) => readdirSync(join(dir, 'cache/copies'), { recursive: true }).filter((name) => String(name).endsWith('half'))
