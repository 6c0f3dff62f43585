/** The disk under the database fills up: posts are refused with a reason, reads go on, nothing that was acknowledged is lost, and no restart is needed. */

import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { createControlClient } from '../../../src/control/client/control-client.ts'
import type { ControlEvent } from '../../../src/control/contract/activity-shapes.ts'
import { sleep } from '../../../src/kit/abort.ts'
import { smallDisk } from '../../crash/small-disk.ts'
import { given } from '../../support/needs.ts'
import { until } from '../../support/until.ts'
import { controlProcess } from '../support/control-process.ts'
import { operatorToken, talkTo } from '../support/control-server.ts'

const clients = 6
const mountable = given(process.getuid?.() === 0 && Bun.spawnSync(['unshare', '-m', 'true']).success, 'root')

test.if(mountable)(
  'a full disk: posts get 503 and a sentence, reads go on; with space again writes work in the same process',
  async () => {
    using disk = smallDisk(6_144)
    const daemon = await controlProcess({ home: disk.path })
    const state = { over: false }
    const leaving = new AbortController()
    try {
      const { ask, client } = talkTo(daemon.url)
      const operator = client()
      const follower = follow(daemon.url, leaving.signal)
      await operator.fleet.add({ id: 'a1', role: 'sysadmin' })
      const { key } = await operator.fleet.newKey('a1')
      const { task_id: held } = await operator.tasks.create({ title: 'held', role: 'sysadmin' })
      const claim = await client(key).tasks.claim({ role: 'sysadmin', agent_id: 'a1', wait_ms: 0, labels: [] })
      const token = claim?.run_token ?? ''
      const acknowledged = new Map<string, string>()
      const refused = new Set<string>()
      const refusals: Awaited<ReturnType<typeof ask>>[] = []

      async function post(own: number): Promise<void> {
        for (let n = 0; !state.over; n += 1) {
          const title = `client-${own}-${n}`
          const answer = await ask('tasks', { body: { title, role: 'storage', description: 'x'.repeat(2_000) } })
          if (answer.status === 201) acknowledged.set(title, answer.body.task_id)
          else {
            refused.add(title)
            refusals.push(answer)
            await Bun.sleep(20)
          }
        }
      }

      const posting = Promise.all(Array.from({ length: clients }, (_, own) => post(own)))
      await until(() => acknowledged.size >= 30)
      disk.leave(200_000)
      await until(() => refused.size >= 5 * clients)
      expect(new Set(refusals.map(({ status }) => status))).toEqual(new Set([503]))
      const [refusal] = refusals
      expect(refusal?.body.error).toMatchObject({ code: 'unavailable', details: { storage: 'full' } })
      expect(refusal?.body.error.message).toMatch(/the disk is full.*free some space/)
      expect(Number(refusal?.headers.get('retry-after'))).toBeGreaterThan(0)
      for (const path of ['/metrics', 'state', 'tasks?view=full&limit=10', `tasks/${held}`, 'budget', 'activity?limit=5'])
        expect([path, (await ask(path)).status]).toEqual([path, 200])
      // Small writes may still find a page; either way the answer is true.
      expect([200, 503]).toContain((await ask(`tasks/${held}/beat`, { body: {}, token })).status)
      const atFull = acknowledged.size

      disk.leave(undefined)
      await until(() => acknowledged.size >= atFull + 30)
      state.over = true
      await posting
      expect((await ask(`tasks/${held}/beat`, { body: {}, token })).status).toBe(200)
      const last = (await operator.tasks.create({ title: 'last', role: 'storage' })).task_id
      await until(() => follower.events.some(({ task_id }) => task_id === last))
      leaving.abort()

      const rows = rowsOf<{ id: number; title: string }>(disk.path, "SELECT id, title FROM tasks WHERE title LIKE 'client-%' ORDER BY id")
      expect(new Map(rows.map(({ id, title }) => [title, `TASK-${String(id).padStart(3, '0')}`]))).toEqual(
        new Map([...acknowledged].sort(byId)),
      )
      expect(rows).toHaveLength(acknowledged.size)
      expect(rows.filter(({ title }) => refused.has(title))).toEqual([])
      const ids = rowsOf<{ id: number }>(disk.path, 'SELECT id FROM events ORDER BY id').map(({ id }) => id)
      expect(ids).toEqual(ids.map((_, at) => at + 1))
      expect(follower.events.map(({ id }) => id)).toEqual(ids)
      // It is one stream: none of this was a reason to end it.
      expect(follower.streams()).toBe(1)
      expect(rowsOf(disk.path, 'PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }])
    } finally {
      state.over = true
      leaving.abort()
      await daemon.kill()
    }
  },
  120_000,
)

const byId = ([, a]: [string, string], [, b]: [string, string]) => a.length - b.length || a.localeCompare(b)

function rowsOf<T>(home: string, sql: string): T[] {
  using db = new Database(join(home, 'control/control.sqlite'), { readonly: true })
  return db.query<T, []>(sql).all()
}

/** As a page does: it asks again when its stream ends, and counts how often it had to ask. */
function follow(url: string, signal: AbortSignal) {
  const state = { streams: 0 }
  const ask = (...[address, init]: Parameters<typeof fetch>) => {
    state.streams += 1
    return fetch(address, init)
  }
  const counting = Object.assign(ask, { preconnect() {} })
  const client = createControlClient({ url, token: () => operatorToken, fetch: counting, sleep, random: Math.random })
  const events: ControlEvent[] = []
  const read = async () => {
    for await (const event of client.events.follow({ after: 0 }, signal)) events.push(event)
  }
  void read().catch(() => undefined)
  return { events, streams: () => state.streams }
}
