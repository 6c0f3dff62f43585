/** Posts that are sent again: the same key counts once on every route, another request with it is refused, and versions guard edits. */

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Answer, type ControlUnderTest, controlServer } from '../support/control-server.ts'

const held: { control?: ControlUnderTest; agent?: string } = {}
beforeAll(async () => {
  held.control = await controlServer({ tickMs: 3_600_000 })
  held.agent = await at().addAgent('sysadmin')
})
afterAll(() => held.control?.[Symbol.asyncDispose]())
const at = (): ControlUnderTest => {
  if (!held.control) throw new Error('not started')
  return held.control
}

const keyed = (key: string) => ({ headers: { 'idempotency-key': key } })
const lastEvent = async () => (await at().ask('activity?limit=1')).body.events[0].id
const draft = { title: 'look', role: 'sysadmin' }

async function claimed() {
  await at().client().tasks.create(draft)
  const claim = await at().client(held.agent).tasks.claim({ role: 'sysadmin', agent_id: 'sysadmin' })
  if (!claim) throw new Error('nothing to claim')
  return claim
}

test('each post that is sent three times at once with one key happens once, with one answer', async () => {
  const { task, run_token: token } = await claimed()
  const pending = await at()
    .client()
    .tasks.create({ ...draft, role: 'other' })
  const asks = { event_type: 'approval_request', agent_id: 'sysadmin', operation: 'x' }
  const asked = await at()
    .client()
    .activity(asks as never)
  const posts: readonly (readonly [path: string, body: object, token?: string])[] = [
    ['tasks', draft],
    ['tasks/batch', { tasks: [draft, draft] }],
    [`tasks/${pending.task_id}/cancel`, { note: 'no' }],
    [`tasks/${pending.task_id}/retry`, {}],
    [`tasks/${task.task_id}/effects`, { key: 'mail' }, token],
    [`approvals/${asked.approval_id}/decision`, { decision: 'approve' }],
    ['agents', { id: 'new', role: 'new' }],
    ['agents/sysadmin/pause', { reason: 'lunch' }],
    ['agents/sysadmin/resume', {}],
    ['agents/sysadmin/wake', {}],
    ['agents/sysadmin/sessions', { timestamp: '2026-04-06T10:00:00Z', task: 't', skill: 's', outcome: 'o', tokens_used: 1 }, token],
    ['budget/reserve', { tokens: 10 }, token],
    ['schedules', { name: 'daily', cron: '@daily', task: draft }],
    ['activity', { event_type: 'error', agent_id: 'sysadmin', error_message: 'once', tokens_used: 5 }],
    [`tasks/${task.task_id}/release`, { outcome: 'failed', error: 'x' }, token],
  ]
  for (const [path, body, token] of posts) {
    const post = (): Promise<Answer> =>
      at().ask(path, { body, ...keyed(`three ${path}`.replaceAll(' ', '-')), ...(token ? { token } : {}) })
    const before = await lastEvent()
    const three = await Promise.all([post(), post(), post()])
    const after = await lastEvent()
    const again = await post()
    expect([path, [...new Set([...three, again].map(({ status, text }) => `${status} ${text}`))].length]).toEqual([path, 1])
    expect([path, three[0]?.status && three[0].status < 300]).toEqual([path, true])
    expect([path, again.headers.get('idempotency-replayed'), await lastEvent()]).toEqual([path, 'true', after])
    expect([path, after - before <= 3]).toEqual([path, true])
    const other = await at().ask(path, {
      body: { ...body, extra: 1 },
      ...keyed(`three ${path}`.replaceAll(' ', '-')),
      ...(token ? { token } : {}),
    })
    expect([path, [400, 422].includes(other.status)]).toEqual([path, true])
  }
})

test('a key belongs to its caller and its request: another body is refused, a refused post may be sent again', async () => {
  const { ask } = at()
  expect((await ask('tasks', { body: draft, ...keyed('mine') })).status).toBe(201)
  const other = await ask('tasks', { body: { ...draft, title: 'other' }, ...keyed('mine') })
  expect([other.status, other.body.error.code]).toEqual([422, 'idempotency_mismatch'])
  const agents = await ask('tasks', { body: draft, ...keyed('mine'), token: held.agent ?? '' })
  expect([agents.status, agents.headers.get('idempotency-replayed')]).toEqual([201, null])
  expect((await ask('agents/nobody/pause', { body: {}, ...keyed('later') })).status).toBe(404)
  await at().client().fleet.add({ id: 'nobody', role: 'x' })
  expect((await ask('agents/nobody/pause', { body: {}, ...keyed('later') })).status).toBe(200)
  for (const key of ['', 'a b', 'x'.repeat(256)])
    expect([key.slice(0, 4), (await ask('tasks', { body: draft, ...keyed(key) })).status]).toEqual([key.slice(0, 4), 400])
})

test('an answer with a secret is never kept: a key is refused there, and no secret is in the database', async () => {
  const secret = ['agents/sysadmin/keys', 'agents/sysadmin/keys/rotate', 'operators', 'tasks/claim']
  for (const path of secret) {
    const answer = await at().ask(path, { body: path === 'operators' ? { name: 'x' } : {}, ...keyed('s') })
    expect([path, answer.status, answer.body.error.code]).toEqual([path, 400, 'bad_key'])
  }
  const secrets = [held.agent ?? '', (await claimed()).run_token, (await at().client().fleet.newOperator('bert')).token]
  for (const file of readdirSync(join(at().home, 'control'))) {
    const bytes = readFileSync(join(at().home, 'control', file))
    expect([file, secrets.filter((each) => bytes.includes(each.slice(4)))]).toEqual([file, []])
  }
})

test('If-Match edits one version alone', async () => {
  const { ask, client } = at()
  const { task_id, version } = await client().tasks.create(draft)
  const read = await ask(`tasks/${task_id}`)
  expect(read.headers.get('etag')).toBe(`"${version}"`)
  const patch = (ifMatch: string, title: string) =>
    ask(`tasks/${task_id}`, { method: 'PATCH', body: { title }, headers: { 'if-match': ifMatch } })
  const first = await patch(`"${version}"`, 'one')
  expect([first.status, first.body.version, first.headers.get('etag')]).toEqual([200, version + 1, `"${version + 1}"`])
  const late = await patch(`"${version}"`, 'two')
  expect([late.status, late.body.error.code, (await client().tasks.get(task_id)).title]).toEqual([409, 'version_conflict', 'one'])
  for (const wrong of ['x', 'W/"1"', '"1', '-1', '"1", "2"']) expect([wrong, (await patch(wrong, 'no')).status]).toEqual([wrong, 400])
  expect((await patch('*', 'three')).status).toBe(200)
  expect((await patch(String(version + 2), 'four')).status).toBe(200)
})

test('a wrong list, number or flag in a query is refused, and pages follow each other', async () => {
  for (const query of [
    'limit=0',
    'limit=201',
    'limit=1e2',
    'limit=0x10',
    'limit=+5',
    'limit=',
    'open=yes',
    'status=done',
    'after=3',
    'role=a/b',
  ])
    expect([query, (await at().ask(`tasks?view=full&${query}`)).status]).toEqual([query, 400])
  for (const path of [
    ...['runs?after=zzz', 'runs?after=TASK-001', 'runs?task_id=RUN-001', 'runs?agent_id=..'],
    ...['approvals?view=full&task_id=RUN-001', 'approvals?view=full&agent_id=a/b', 'activity?run_id=TASK-001', 'events?run_id=1'],
  ])
    expect([path, (await at().ask(path)).status]).toEqual([path, 400])
  await at()
    .client()
    .tasks.createMany(Array.from({ length: 7 }, (_, n) => ({ title: `page ${n}`, role: 'paged' })))
  const seen: string[] = []
  for (let after = ''; ; ) {
    const { body } = await at().ask(`tasks?role=paged&limit=3${after}`)
    seen.push(...body.tasks.map(({ title }: { title: string }) => title))
    if (body.next === null) break
    after = `&after=${body.next}`
  }
  expect(seen).toEqual([6, 5, 4, 3, 2, 1, 0].map((n) => `page ${n}`))
  expect(at().errors).toEqual([])
})
