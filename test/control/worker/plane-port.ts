/** A control plane in this process, on a file of its own, as a worker sees it: who speaks is decided by the token of each call. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Caller } from '../../../src/control/contract/caller.ts'
import { PlaneRefusal } from '../../../src/control/contract/plane-refusal.ts'
import { type Task, type TaskDraft, taskDraft } from '../../../src/control/contract/task-shapes.ts'
import { createPlane } from '../../../src/control/plane/create-plane.ts'
import { openSqlite } from '../../../src/control/store/open-sqlite.ts'
import type { WorkerPort } from '../../../src/control/worker/worker-port.ts'

export const anna: Caller = { kind: 'operator', id: 'op1', name: 'anna' }

export type TestPlane = Awaited<ReturnType<typeof testPlane>>

export async function testPlane({ leaseSeconds = 60 } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'control-plane-'))
  const store = await openSqlite({ path: join(folder, 'control.sqlite'), log: () => {} })
  const plane = createPlane({
    ...{ store, now: Date.now, random: Math.random, leaseSeconds, approvalHours: 24, log: () => {} },
    randomBytes: (count) => crypto.getRandomValues(new Uint8Array(count)),
  })
  const { tasks, runs, approvals, fleet, access, activity, seed, budget } = plane
  /** `cut`: no call gets through. `beatSentMs`: when the last beat was sent, by the clock that nobody sets. */
  const line = { cut: false, calls: [] as string[], beatSentMs: 0 }

  async function as<T>(token: string, name: string, call: (caller: Caller) => Promise<T>): Promise<T> {
    if (line.cut) throw new Error('ECONNREFUSED')
    line.calls.push(name)
    if (name === 'beat') line.beatSentMs = performance.now()
    const caller = await access.callerOf(token)
    if (!caller) throw new PlaneRefusal('unauthorized', 'the token is not in force')
    return call(caller)
  }

  function port(key: string): WorkerPort {
    return {
      state: () => as(key, 'state', (me) => seed.state(me)),
      report: (id, worker, receipts) => as(key, 'report', (me) => fleet.report(me, id, worker, receipts)),
      claim: (request, signal) => as(key, 'claim', (me) => tasks.claim(me, request, signal)),
      task: (id) => as(key, 'task', (me) => tasks.get(me, id)),
      activity: (post) => as(key, post.event_type, (me) => activity(me, post)),
      addSession: (id, line) => as(key, 'session', (me) => runs.addSession(me, id, line)),
      runState: (id) => as(key, 'runState', async (me) => (await runs.get(me, id)).state),
      appendLog: (...piece) => as(key, 'log by agent', (me) => runs.appendLog(me, ...piece)),
      deliver: (id, delivery) => as(key, 'deliver by agent', (me) => runs.deliver(me, id, delivery)),
      putArtifact: (id, artifact) => as(key, 'artifact by agent', (me) => runs.putArtifact(me, id, artifact)),
      run: (token) => ({
        beat: (id) => as(token, 'beat', (me) => tasks.beat(me, id)),
        release: (id, request) => as(token, 'release', (me) => tasks.release(me, id, request)),
        activity: (post) => as(token, post.event_type, (me) => activity(me, post)),
        appendLog: (...piece) => as(token, 'log', (me) => runs.appendLog(me, ...piece)),
        deliver: (id, delivery) => as(token, 'deliver', (me) => runs.deliver(me, id, delivery)),
        putArtifact: (id, artifact) => as(token, 'artifact', (me) => runs.putArtifact(me, id, artifact)),
        reserve: (request) => as(token, 'reserve', (me) => budget.reserve(me, request)),
        settle: (request) => as(token, 'settle', (me) => budget.settle(me, request)),
        approvals: (task_id) => as(token, 'approvals', async (me) => (await approvals.list(me, { task_id, limit: 50 })).approvals),
        useApproval: (id, digest) => as(token, 'use', (me) => approvals.use(me, id, digest)),
      }),
    }
  }

  return {
    ...{ tasks, runs, approvals, fleet, budget, access, activity, line, port },
    async agent(id = 'a1', role = 'sysadmin'): Promise<WorkerPort> {
      await fleet.add(anna, { id, role, heartbeat_enabled: true, description: '', daily_tokens: null })
      return port((await fleet.newKey(anna, id)).key)
    },
    add: async (fields: Partial<TaskDraft> = {}): Promise<Task> =>
      (await tasks.create(anna, taskDraft.parse({ title: 'look', role: 'sysadmin', ...fields }))).task,
    task: (id: string) => tasks.get(anna, id),
    run: (id = 'RUN-001') => runs.get(anna, id),
    log: async (id = 'RUN-001') => Buffer.from((await runs.log(anna, id, 0, 10_000_000)).bytes).toString(),
    async close() {
      await store.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
