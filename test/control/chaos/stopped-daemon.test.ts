/** The daemon is stopped for longer than its leases, with beats and claims under way, and goes on: a task has one live token, and no event is missing. */

import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ControlEvent } from '../../../src/control/contract/activity-shapes.ts'
import type { Claim } from '../../../src/control/contract/task-shapes.ts'
import { until } from '../../support/until.ts'
import { controlProcess } from '../support/control-process.ts'
import { talkTo } from '../support/control-server.ts'

const tasks = 6
const rounds = 2
/** Long enough for a busy machine to ask for all tasks in time. */
const leaseMs = 2_000

test('a daemon that was stopped for longer than a lease never leaves two live tokens for one task', async () => {
  const home = mkdtempSync(join(tmpdir(), 'control-stopped-'))
  const daemon = await controlProcess({ home, env: { CONTROLPLANE_LEASE_SECONDS: String(leaseMs / 1_000) } })
  const leaving = new AbortController()
  try {
    const { ask, client } = talkTo(daemon.url)
    const operator = client()
    const events: ControlEvent[] = []
    const following = (async () => {
      for await (const event of operator.events.follow({ after: 0 }, leaving.signal)) events.push(event)
    })().catch(() => undefined)
    const agents = ['early', 'late']
    const keys: string[] = []
    for (const id of agents) {
      await operator.fleet.add({ id, role: 'sysadmin' })
      keys.push((await operator.fleet.newKey(id)).key)
    }
    for (let n = 0; n < tasks; n += 1) await operator.tasks.create({ title: `task ${n}`, role: 'sysadmin', max_attempts: 100 })

    const claims: Claim[] = []
    const claim = async (who: number, waitMs: number): Promise<void> => {
      const body = { role: 'sysadmin', agent_id: agents[who], wait_ms: waitMs }
      const answer = await ask('tasks/claim', { body, token: keys[who] ?? '' })
      if (answer.status === 200) claims.push(answer.body)
    }
    const beat = async ({ task, run_token }: Claim): Promise<number> =>
      (await ask(`tasks/${task.task_id}/beat`, { body: {}, token: run_token })).status
    const isLive = async (one: Claim): Promise<boolean> => (await beat(one)) === 200

    for (let round = 0; round < rounds; round += 1) {
      await Promise.all(Array.from({ length: tasks }, () => claim(round % 2, 10_000)))
      const before = [...claims]
      process.kill(daemon.pid, 'SIGSTOP')
      // They lie in the sockets of the daemon when it goes on: it reads them in any order.
      const lateBeats = before.map(beat)
      const lateClaims = Array.from({ length: tasks }, () => claim((round + 1) % 2, 10_000))
      await Bun.sleep(leaseMs * 1.4)
      process.kill(daemon.pid, 'SIGCONT')
      const [beats] = await Promise.all([Promise.all(lateBeats), Promise.all(lateClaims)])
      // A worker that could not send a beat for a whole lease must not use its old state, whether or not another one has the task now.
      expect(new Set(beats)).toEqual(new Set([409]))
      expect(claims.length - before.length).toBe(tasks)
      const live = (await Promise.all(claims.map(async (one) => ((await isLive(one)) ? [one.task.task_id] : [])))).flat()
      expect(live.toSorted()).toEqual([...new Set(live)].toSorted())
      expect(live).toHaveLength(tasks)
      await Bun.sleep(leaseMs * 1.1)
    }

    const last = (await operator.tasks.create({ title: 'last', role: 'nobody' })).task_id
    await until(() => events.at(-1)?.task_id === last)
    leaving.abort()
    await following
    using db = new Database(join(home, 'control/control.sqlite'), { readonly: true })
    const rows = (sql: string) => db.query<Record<string, number>, []>(sql).all()
    expect(
      rows('SELECT a.id FROM runs a JOIN runs b ON b.task_id = a.task_id AND b.id > a.id AND b.began_at < COALESCE(a.ended_at, 9e15)'),
    ).toEqual([])
    expect(rows("SELECT task_id FROM runs WHERE state = 'running' GROUP BY task_id HAVING count(*) > 1")).toEqual([])
    const ids = rows('SELECT id FROM events ORDER BY id').map(({ id }) => id)
    expect(events.map(({ id }) => id)).toEqual(ids.slice(0, events.length) as number[])
    expect(events.at(-1)?.task_id).toBe(last)
    expect(events.map(({ id }) => id)).toEqual(events.map((_, at) => at + 1))
  } finally {
    leaving.abort()
    await daemon.kill()
    rmSync(home, { recursive: true, force: true })
  }
}, 120_000)
