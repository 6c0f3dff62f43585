/** Kills the daemon while many clients post with Idempotency-Keys: what was answered is there, nothing is there twice, and repeats agree. */

import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ControlEvent } from '../../../src/control/contract/activity-shapes.ts'
import { repetitions } from '../../support/tier.ts'
import { until } from '../../support/until.ts'
import { type ControlProcess, controlProcess } from '../support/control-process.ts'
import { talkTo } from '../support/control-server.ts'

const clients = 12

test('kill -9 under load: each key has made one task, and a follower misses and doubles no event', async () => {
  const home = mkdtempSync(join(tmpdir(), 'control-kill-'))
  const state: { daemon: ControlProcess; over: boolean } = { daemon: await controlProcess({ home }), over: false }
  const { url, port } = state.daemon
  const { ask, client } = talkTo(url)
  const answered = new Map<string, string>()

  const followed: ControlEvent[] = []
  const leaving = new AbortController()
  const following = (async () => {
    for await (const event of client().events.follow({ after: 0 }, leaving.signal)) followed.push(event)
  })()

  async function post(own: number): Promise<void> {
    for (let n = 0; !state.over; n += 1) {
      const key = `client-${own}-${n}`
      for (let tries = 0; tries < 200 && !answered.has(key); tries += 1) {
        const body = { title: key, role: 'sysadmin' }
        const answer = await ask('tasks', { body, headers: { 'idempotency-key': key } }).catch(() => undefined)
        if (answer?.status === 201) answered.set(key, answer.body.task_id)
        else await Bun.sleep(20)
      }
    }
  }

  const posting = Promise.all(Array.from({ length: clients }, (_, own) => post(own)))
  for (let death = 0; death < repetitions({ fast: 1, deep: 4 }); death += 1) {
    const enough = answered.size + 60
    await until(() => answered.size >= enough)
    await state.daemon.kill()
    state.daemon = await controlProcess({ home, port })
  }
  state.over = true
  await posting

  const made = new Map<string, string[]>()
  for (let after: string | undefined; ; ) {
    const page = await client().tasks.list({ limit: 200, ...(after ? { after } : {}) })
    for (const { title, task_id } of page.tasks) made.set(title, [...(made.get(title) ?? []), task_id])
    if (page.next === null) break
    after = page.next
  }
  expect([...made].filter(([, ids]) => ids.length !== 1)).toEqual([])
  expect([...answered].filter(([key, id]) => made.get(key)?.[0] !== id)).toEqual([])
  for (const [key, id] of [...answered].slice(0, 40)) {
    const again = await ask('tasks', { body: { title: key, role: 'sysadmin' }, headers: { 'idempotency-key': key } })
    expect([again.status, again.body.task_id, again.headers.get('idempotency-replayed')]).toEqual([201, id, 'true'])
  }

  const last = (await client().events.list({ limit: 1 })).events[0]?.id ?? 0
  await until(() => (followed.at(-1)?.id ?? 0) >= last)
  leaving.abort()
  await following
  const ids = followed.map(({ id }) => id)
  expect(ids).toEqual([...new Set(ids)].sort((a, b) => a - b))
  expect(new Set(followed.filter(({ type }) => type === 'task.created').map(({ task_id }) => task_id)).size).toBe(made.size)
  expect(await state.daemon.stop()).toBe(0)
  rmSync(home, { recursive: true, force: true })
}, 120_000)

test('another post that a kill interrupts is said to be so, and is not done again', async () => {
  const home = mkdtempSync(join(tmpdir(), 'control-kill-'))
  const first = await controlProcess({ home })
  const { ask } = talkTo(first.url)
  const keyed = { headers: { 'idempotency-key': 'agent-once' } }
  const body = { id: 'sysadmin', role: 'sysadmin' }
  const made = await ask('agents', { body, ...keyed })
  expect(made.status).toBe(201)
  await first.kill()
  const second = await controlProcess({ home, port: first.port })
  const again = await ask('agents', { body, ...keyed })
  expect([again.status, again.headers.get('idempotency-replayed'), again.text]).toEqual([201, 'true', made.text])
  const other = await ask('agents', { body: { ...body, id: 'other' }, ...keyed })
  expect([other.status, other.body.error.code]).toEqual([422, 'key_reused'])
  expect((await ask('agents', { body })).status).toBe(409)
  expect(await second.stop()).toBe(0)
  rmSync(home, { recursive: true, force: true })
}, 120_000)
