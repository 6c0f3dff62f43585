/** Hundreds of workers wait at a real plane: each task goes to exactly one of them, soon, and none to a worker that has gone. */

import { expect, test } from 'bun:test'
import { type RawAnswer, rawRequest, sendRaw } from '../../support/raw-http.ts'
import { until } from '../../support/until.ts'
import { controlServer } from '../support/control-server.ts'

const crowd = 500

test('500 workers wait; half of them leave; as many tasks as stay go to those who stayed, one each', async () => {
  await using control = await controlServer()
  const key = await control.addAgent('sysadmin')
  const client = control.client()
  const headers = [`Host: 127.0.0.1:${control.port}`, `Authorization: Bearer ${key}`, 'Content-Type: application/json']
  const body = JSON.stringify({ role: 'sysadmin', agent_id: 'sysadmin', wait_ms: 25_000 })
  const claim = rawRequest('POST /api/controlplane/tasks/claim HTTP/1.1', headers, body)
  const waiting: Promise<RawAnswer>[] = []
  const leaving = new AbortController()
  for (let n = 0; n < crowd; n += 1) waiting.push(sendRaw(control.port, claim, n % 2 === 0 ? { signal: leaving.signal } : {}))
  const wait = (count: number) =>
    until(async () => (await control.ask('/metrics')).text.includes(`braidclaw_control_waiting_claims ${count}\n`))
  await wait(crowd)
  // They close their connections, as a worker that dies does.
  leaving.abort()
  await wait(crowd / 2)
  await client.tasks.createMany(Array.from({ length: crowd / 2 }, (_, n) => ({ title: `${n}`, role: 'sysadmin' })))
  const answers = await Promise.all(waiting)
  const [left, stayed] = [answers.filter((_, n) => n % 2 === 0), answers.filter((_, n) => n % 2 === 1)]
  expect(new Set(left.map(({ status }) => status))).toEqual(new Set([0]))
  expect(new Set(stayed.map(({ status }) => status))).toEqual(new Set([200]))
  expect(new Set(stayed.map(({ body }) => JSON.parse(body).task.task_id)).size).toBe(crowd / 2)
  const { counts } = await client.tasks.list({ role: 'sysadmin', limit: 1 })
  expect([counts.running, counts.pending ?? 0]).toEqual([crowd / 2, 0])
  expect(control.errors).toEqual([])
}, 120_000)
