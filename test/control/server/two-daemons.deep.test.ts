/** Two daemons on one real PostgreSQL behave as one: what one is told, the other knows, hears and refuses. */

import { describe, expect, test } from 'bun:test'
import type { ControlEvent } from '../../../src/control/contract/activity-shapes.ts'
import { until } from '../../support/until.ts'
import { cleaned } from '../support/cleaned.ts'
import { type ControlUnderTest, controlServer } from '../support/control-server.ts'
import { hasPostgres } from '../support/postgres.ts'
import { startedPostgres } from '../support/postgres-of-file.ts'

describe.if(hasPostgres())('two daemons on one PostgreSQL', () => {
  const postgres = startedPostgres()
  const cleanups = cleaned()

  async function pair(): Promise<readonly [ControlUnderTest, ControlUnderTest]> {
    const env = { CONTROLPLANE_DATABASE_URL: await postgres().createDatabase() }
    const one = await controlServer({ env })
    cleanups.push(() => one[Symbol.asyncDispose]())
    const other = await controlServer({ env })
    cleanups.push(() => other[Symbol.asyncDispose]())
    return [one, other]
  }

  test('a claim that waits at one daemon gets the task that is created at the other', async () => {
    const [one, other] = await pair()
    expect(one.control.engine).toBe('postgres')
    const key = await one.addAgent('sysadmin')
    const waiting = other.client(key).tasks.claim({ role: 'sysadmin', agent_id: 'sysadmin', wait_ms: 25_000 })
    await until(async () => (await other.ask('/metrics')).text.includes('braidclaw_control_waiting_claims 1\n'))
    const { task_id } = await one.client().tasks.create({ title: 'across', role: 'sysadmin' })
    const claim = await waiting
    expect(claim?.task.task_id).toBe(task_id)
    // The fence holds at either of them.
    expect((await one.client(claim?.run_token).tasks.beat(task_id)).cancel_requested).toBe(false)
    await one.client().tasks.cancel(task_id)
    expect((await other.client(claim?.run_token).tasks.beat(task_id)).cancel_requested).toBe(true)
  }, 120_000)

  test('a follower of one daemon hears what happens at the other, in order, and may resume at either', async () => {
    const [one, other] = await pair()
    const read = async (control: ControlUnderTest, after: number, most: number): Promise<ControlEvent[]> => {
      const seen: ControlEvent[] = []
      for await (const event of control.client().events.follow({ after }, AbortSignal.timeout(50_000))) if (seen.push(event) >= most) break
      return seen
    }
    const following = read(other, 0, 11)
    await Promise.all(
      [one, other].flatMap((control) => Array.from({ length: 5 }, (_, n) => control.client().tasks.create({ title: `${n}`, role: 'x' }))),
    )
    const ids = (await following).map(({ id }) => id)
    expect(ids).toEqual([...ids].sort((a, b) => a - b))
    expect((await read(one, ids[4] ?? 0, 6)).map(({ id }) => id)).toEqual(ids.slice(5))
  }, 120_000)

  test('a post that is sent to both at once with one key happens once', async () => {
    const [one, other] = await pair()
    const headers = { 'idempotency-key': 'both' }
    const add = (control: ControlUnderTest) => control.ask('agents', { body: { id: 'sysadmin', role: 'sysadmin' }, headers })
    const answers = await Promise.all([add(one), add(other)])
    expect(answers.map(({ status, body }) => body.error?.code ?? status).filter((each) => each !== 201 && each !== 'in_progress')).toEqual(
      [],
    )
    const again = await Promise.all([add(one), add(other)])
    expect(again.map(({ status, headers }) => [status, headers.get('idempotency-replayed')])).toEqual([
      [201, 'true'],
      [201, 'true'],
    ])
    expect(again[0]?.text).toBe(again[1]?.text)
    const create = (control: ControlUnderTest) =>
      control.ask('tasks', { body: { title: 'once', role: 'x' }, headers: { 'idempotency-key': 'task' } })
    const tasks = await Promise.all([create(one), create(other), create(one), create(other)])
    expect(new Set(tasks.map(({ body }) => body.task_id)).size).toBe(1)
  }, 120_000)

  test('what is revoked at one daemon is over at the other with the next request', async () => {
    const [one, other] = await pair()
    const key = await one.addAgent('sysadmin')
    const bert = await one.client().fleet.newOperator('bert')
    expect((await other.ask('tasks?role=sysadmin', { token: key })).status).toBe(200)
    expect((await other.ask('agents', { token: bert.token })).status).toBe(200)
    await one.client().fleet.revokeKey('sysadmin', (await one.client().fleet.keys('sysadmin'))[0]?.key_id ?? '')
    await one.client().fleet.revokeOperator(bert.id)
    expect((await other.ask('tasks?role=sysadmin', { token: key })).status).toBe(401)
    expect((await other.ask('agents', { token: bert.token })).status).toBe(401)
  }, 120_000)

  test('without the database health says so, requests answer 503, and all works again when it is back', async () => {
    const [one] = await pair()
    expect((await fetch(`${one.url}/health`)).status).toBe(200)
    await postgres().stop('immediate')
    const down = await one.ask('agents')
    expect([down.status, down.body.error.code]).toEqual([503, 'unavailable'])
    await until(async () => (await fetch(`${one.url}/health`)).status === 503)
    const health = await fetch(`${one.url}/health`)
    expect([health.status, await health.json()]).toMatchObject([503, { ok: false }])
    await postgres().start()
    await until(async () => (await one.ask('agents')).status === 200)
    await until(async () => (await fetch(`${one.url}/health`)).status === 200)
  }, 120_000)
})
