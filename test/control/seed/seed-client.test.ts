/** A client written after the text of seed 004 alone, with fetch and with curl: the examples of the text are answered byte for byte. */

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Claim } from '../../../src/control/contract/task-shapes.ts'
import { needs } from '../../support/needs.ts'
import { type ControlUnderTest, controlServer } from '../support/control-server.ts'

const golden = (name: string) => readFileSync(join(import.meta.dir, 'golden', `${name}.json`), 'utf8')
/** The example without its line breaks, as JSON travels. */
const packed = (name: string) => JSON.stringify(JSON.parse(golden(name)))

const clock = { at: Date.parse('2026-04-07T10:30:00Z') }
const held: { control?: ControlUnderTest } = {}
const calls: unknown[] = []

function at(): ControlUnderTest {
  if (!held.control) throw new Error('not started')
  return held.control
}

beforeAll(async () => {
  const answer = JSON.parse(golden('hostd-answer'))
  held.control = await controlServer({
    now: () => clock.at,
    hostd: {
      call: async (caller, { op, params }) => {
        calls.push([caller.kind, op, params])
        return answer
      },
      operations: async () => [],
    },
  })
  const client = at().client()
  const { agents, budget } = JSON.parse(golden('state'))
  for (const { id, role, heartbeat_enabled } of agents) await client.fleet.add({ id, role, heartbeat_enabled })
  await client.budget.set({ daily_tokens: budget.daily_tokens, allocation: budget.allocation })
})
afterAll(() => held.control?.[Symbol.asyncDispose]())

/** All that the seed tells its clients: the address and the secret. */
const env = () => ({ CONTROLPLANE_API_URL: at().url, CONTROLPLANE_SHARED_SECRET: at().sharedSecret })

async function seed(path: string, body?: string): Promise<{ readonly status: number; readonly text: string }> {
  const { CONTROLPLANE_API_URL, CONTROLPLANE_SHARED_SECRET } = env()
  const response = await fetch(`${CONTROLPLANE_API_URL}/api/controlplane/${path}`, {
    ...(body === undefined ? {} : { method: 'POST', body }),
    headers: {
      authorization: `Bearer ${CONTROLPLANE_SHARED_SECRET}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
  })
  return { status: response.status, text: await response.text() }
}

const hasCurl = needs('curl')

async function curl(path: string, body?: string): Promise<string> {
  const { CONTROLPLANE_API_URL, CONTROLPLANE_SHARED_SECRET } = env()
  const post = body === undefined ? [] : ['-H', 'Content-Type: application/json', '--data-binary', body]
  const bearer = ['-H', `Authorization: Bearer ${CONTROLPLANE_SHARED_SECRET}`]
  const child = Bun.spawn([
    'curl',
    '-sS',
    '--fail-with-body',
    '-m',
    '10',
    ...bearer,
    ...post,
    `${CONTROLPLANE_API_URL}/api/controlplane/${path}`,
  ])
  const text = await new Response(child.stdout).text()
  expect(await child.exited).toBe(0)
  return text
}

async function claimed(agent: string, role: string): Promise<Claim> {
  const { key } = await at().client().fleet.newKey(agent)
  const claim = await at().client(key).tasks.claim({ role, agent_id: agent })
  if (!claim) throw new Error(`nothing for ${role}`)
  return claim
}

test('GET tasks: the task of the example', async () => {
  const [example] = JSON.parse(golden('tasks')).tasks
  await at()
    .client()
    .tasks.create({
      title: example.title,
      description: example.description,
      role: example.assigned_to,
      priority: example.priority,
      context: example.context,
    })
  expect((await seed('tasks?role=sysadmin')).text).toBe(packed('tasks'))
  expect((await seed('tasks?role=git-admin')).text).toBe('{"tasks":[]}')
})

test.if(hasCurl)('GET tasks with curl: the same bytes', async () => {
  expect(await curl('tasks?role=sysadmin')).toBe(packed('tasks'))
})

test('GET approvals: one that waits and one that was approved', async () => {
  const client = at().client()
  // The numbers of the example: 40 others were asked before.
  for (let n = 1; n <= 40; n += 1)
    await seed('activity', JSON.stringify({ event_type: 'approval_request', agent_id: 'sysadmin', operation: `other ${n}` }))
  await seed('activity', JSON.stringify({ event_type: 'approval_request', agent_id: 'git-admin', operation: 'backup database' }))
  await client.tasks.create({ title: 'merge', role: 'git-admin' })
  const { run_token } = await claimed('git-admin', 'git-admin')
  const [{ operation, estimated_tokens }] = JSON.parse(golden('approvals')).pending
  const ask = { event_type: 'approval_request', agent_id: 'git-admin', operation, estimated_tokens }
  expect((await at().ask('activity', { body: ask, token: run_token })).status).toBe(200)
  clock.at = Date.parse('2026-04-07T10:45:00Z')
  await client.approvals.decide('APPR-041', { decision: 'approve' })
  expect((await seed('approvals?agent_id=git-admin')).text).toBe(packed('approvals'))
})

test.if(hasCurl)('GET approvals with curl: the same bytes', async () => {
  expect(await curl('approvals?agent_id=git-admin')).toBe(packed('approvals'))
})

test('POST activity: a completion as in the example ends the task and counts its tokens', async () => {
  const { status, text } = await seed('activity', golden('task-completed'))
  expect([status, JSON.parse(text)]).toMatchObject([200, { ok: true, task_id: 'TASK-001' }])
  const task = await at().client().tasks.get('TASK-001')
  expect([task.status, task.tokens_used, task.result]).toMatchObject(['completed', 420, { output: expect.stringContaining('clawdie-db') }])
  expect((await seed('tasks?role=sysadmin')).text).toBe('{"tasks":[]}')
})

test('POST activity with nothing but the Authorization of the text: JSON without a content type', async () => {
  const { CONTROLPLANE_API_URL, CONTROLPLANE_SHARED_SECRET } = env()
  const post = (headers: Record<string, string>) =>
    fetch(`${CONTROLPLANE_API_URL}/api/controlplane/activity`, {
      method: 'POST',
      body: new TextEncoder().encode(JSON.stringify({ event_type: 'error', agent_id: 'db-admin', error_message: 'locked' })),
      headers,
    })
  expect((await post({})).status).toBe(415)
  const response = await post({ authorization: `Bearer ${CONTROLPLANE_SHARED_SECRET}` })
  expect([response.status, await response.json()]).toMatchObject([200, { ok: true }])
})

test.if(hasCurl)('POST activity: an approval request and an error as in the examples, with curl', async () => {
  const asked = JSON.parse(await curl('activity', golden('approval-request')))
  const { pending } = JSON.parse((await seed('approvals?agent_id=git-admin')).text)
  expect(pending.find((each: { approval_id: string }) => each.approval_id === asked.approval_id)).toEqual({
    approval_id: asked.approval_id,
    task_id: null,
    operation: 'Merge PR #42 with conflict resolution',
    estimated_tokens: 8500,
    operator_approved: false,
  })
  const told = JSON.parse(await curl('activity', golden('error')))
  const escalated = await at().client().tasks.get(told.escalation_task_id)
  expect([escalated.role, escalated.status]).toEqual(['orchestrator', 'pending'])
})

test('GET state: the agents in order, and the budget of the example', async () => {
  const { spent_today } = JSON.parse(golden('state')).budget
  // The example has spent 25,000 today.
  const soFar = (await at().client().budget.get()).spent_today
  const rest = { event_type: 'error', agent_id: 'clawdie', error_message: 'x', tokens_used: spent_today - soFar }
  await seed('activity', JSON.stringify(rest))
  expect((await seed('state')).text).toBe(packed('state'))
})

test.if(hasCurl)('GET state with curl: the same bytes', async () => {
  expect(await curl('state')).toBe(packed('state'))
})

test('POST hostd: the example is passed on, and its answer comes back', async () => {
  expect((await seed('hostd', golden('hostd-request'))).text).toBe(packed('hostd-answer'))
  expect(calls.splice(0)).toEqual([['seed', 'bastille-list', {}]])
})

test.if(hasCurl)('POST hostd with curl: the same', async () => {
  expect(await curl('hostd', golden('hostd-request'))).toBe(packed('hostd-answer'))
  expect(calls.splice(0)).toEqual([['seed', 'bastille-list', {}]])
})

test('the shared secret does nothing besides, and nothing without it', async () => {
  for (const path of [
    'agents',
    'budget',
    'runs',
    'tasks/TASK-001',
    'tasks?view=full',
    'tasks?status=pending',
    'approvals?view=full',
    'activity',
    'events',
  ])
    expect([path, (await seed(path)).status]).toEqual([path, 403])
  for (const [path, body] of [
    ['tasks', { title: 'x', role: 'sysadmin' }],
    ['approvals/APPR-042/decision', { decision: 'approve' }],
    ['tasks/claim', { role: 'sysadmin', agent_id: 'sysadmin' }],
    ['agents/sysadmin/keys', {}],
  ] as const)
    expect([path, (await seed(path, JSON.stringify(body))).status]).toEqual([path, 403])
  expect((await at().ask('state', { token: null })).status).toBe(401)
  expect((await at().ask('state', { token: `${at().sharedSecret}x` })).status).toBe(401)
  expect((await at().ask('state', { token: at().sharedSecret, headers: { 'x-forwarded-for': '192.0.2.1' } })).status).toBe(403)
})

test('a completion by the shared secret is refused while somebody holds the task', async () => {
  const client = at().client()
  const { task_id } = await client.tasks.create({ title: 'held', role: 'db-admin' })
  await claimed('db-admin', 'db-admin')
  const post = {
    event_type: 'task_completed',
    task_id,
    agent_id: 'db-admin',
    result: { status: 'success', output: 'mine', tokens_used: 1 },
  }
  const refused = await seed('activity', JSON.stringify(post))
  expect([refused.status, JSON.parse(refused.text).error.code]).toEqual([409, 'lease_lost'])
  expect((await client.tasks.get(task_id)).status).toBe('running')
  expect(at().errors).toEqual([])
})
