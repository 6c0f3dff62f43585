/** Tests a worker before the runner begins and while its task waits: copies that are stopped, decisions that are asked again, copies that continue. */

import { describe, expect, test } from 'bun:test'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PlaneRefusal } from '../../../src/control/contract/plane-refusal.ts'
import { commandRunner } from '../../../src/control/runners/foreign-runners.ts'
import { needs } from '../../support/needs.ts'
import { sleeperOf, uniqueSeconds } from '../../support/sleeper.ts'
import { until } from '../../support/until.ts'
import { planeAndPlaceOfEachTest, result } from './plane-and-place.ts'
import { anna } from './plane-port.ts'
import type { WorkerPlace } from './worker-place.ts'

const given = planeAndPlaceOfEachTest()

describe.if(needs('bwrap'))('a worker', () => {
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

/** Lists the files named half in the folders of the copies. */
const half = (dir: string) => readdirSync(join(dir, 'cache/copies'), { recursive: true }).filter((name) => String(name).endsWith('half'))
