/** What the routes answer has exactly the fields that the contract names, and /openapi.json describes each of them. */

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { z } from 'zod'
import { activityReply, approval, approvedOperation, controlEvent } from '../../../src/control/contract/activity-shapes.ts'
import {
  agent,
  agentKey,
  budget,
  newAgentKey,
  newOperatorToken,
  operatorToken,
  reservation,
  settled,
} from '../../../src/control/contract/fleet-shapes.ts'
import { listedRun, run, sessionLine } from '../../../src/control/contract/run-shapes.ts'
import { beat, claim, effect, effectReply, schedule, task } from '../../../src/control/contract/task-shapes.ts'
import { type ControlUnderTest, controlServer } from '../support/control-server.ts'

const held: { control?: ControlUnderTest; agent?: string; run?: string; ids?: { readonly task: string; readonly run: string } } = {}
beforeAll(async () => {
  held.control = await controlServer()
  held.agent = await at().addAgent('sysadmin')
})
afterAll(() => held.control?.[Symbol.asyncDispose]())
const at = (): ControlUnderTest => {
  if (!held.control) throw new Error('not started')
  return held.control
}

/** No field more and none less, at the first level. */
function exactly<S extends z.ZodObject>(schema: S) {
  return z.strictObject(schema.shape)
}

type Case = readonly [path: string, schema: z.ZodType, body?: object, token?: string]

async function check(cases: readonly Case[]): Promise<void> {
  for (const [path, schema, body, token] of cases) {
    const answer = await at().ask(path, { ...(body ? { body } : {}), ...(token ? { token } : {}) })
    const { error } = schema.safeParse(answer.body)
    expect([path, answer.status < 300, error ? z.prettifyError(error) : '']).toEqual([path, true, ''])
  }
}

test('posts', async () => {
  const draft = { title: 'look', role: 'sysadmin' }
  await check([
    ['tasks', exactly(task), draft],
    ['tasks/batch', z.strictObject({ tasks: z.array(exactly(task)) }), { tasks: [draft] }],
  ])
  const claimed = await at().ask('tasks/claim', { body: { role: 'sysadmin', agent_id: 'sysadmin' }, token: held.agent ?? '' })
  expect(exactly(claim).safeParse(claimed.body).error).toBeUndefined()
  const { run_token, run_id, task: mine } = claimed.body
  const [own, ofRun] = [`tasks/${mine.task_id}`, run_token]
  const line = { timestamp: '2026-04-06T10:00:00Z', task: 't', skill: 's', outcome: 'o', tokens_used: 1 }
  await check([
    [`${own}/beat`, exactly(beat), {}, ofRun],
    [`${own}/effects`, exactly(effectReply), { key: 'mail/1', idempotent: true }, ofRun],
    [`${own}/effects/done`, exactly(effectReply), { key: 'mail/1', result: { sent: true } }, ofRun],
    ['budget/reserve', exactly(reservation), { tokens: 5 }, ofRun],
    [
      'budget/settle',
      exactly(settled),
      { reservation_id: (await at().ask('budget/reserve', { body: { tokens: 5 }, token: ofRun })).body.reservation_id, tokens: 4 },
      ofRun,
    ],
    [`runs/${run_id}/log`, z.strictObject({ log_bytes: z.int(), log_truncated: z.boolean() }), { at: 0, piece: 'x' }, ofRun],
    [`runs/${run_id}/deliver`, exactly(run), { skill: 'x', changes: 'none' }, ofRun],
    ['agents/sysadmin/sessions', z.strictObject({ ok: z.literal(true) }), line, ofRun],
    ['agents/sysadmin/report', exactly(agent), { worker: { host: 'h' } }, held.agent],
    ['activity', exactly(activityReply), { event_type: 'approval_request', agent_id: 'sysadmin', operation: 'x' }, ofRun],
  ])
  const { approvals } = await at().client().approvals.list({ limit: 1 })
  const id = approvals[0]?.approval_id ?? ''
  await check([
    [`approvals/${id}/decision`, exactly(approval), { decision: 'approve', note: 'yes' }],
    ['agents/sysadmin/keys', exactly(newAgentKey), {}],
    ['operators', exactly(newOperatorToken), { name: 'bert' }],
    ['schedules', exactly(schedule), { name: 'daily', cron: '@daily', task: draft }],
    ['agents/sysadmin/pause', exactly(agent), { reason: 'lunch' }],
    ['agents/sysadmin/resume', exactly(agent), {}],
    ['agents/sysadmin/wake', exactly(agent), {}],
  ])
  const again = await at().client(held.agent).tasks.claim({ role: 'sysadmin', agent_id: 'sysadmin' })
  expect(again?.task.task_id).toBe(mine.task_id)
  await check([[`approvals/${id}/use`, exactly(approvedOperation), {}, again?.run_token]])
  held.ids = { task: mine.task_id, run: run_id }
})

test('reads', async () => {
  const { task: taskId, run: runId } = held.ids ?? { task: '', run: '' }
  const next = z.nullable(z.string())
  await check([
    ['tasks?view=full', z.strictObject({ tasks: z.array(exactly(task)).min(2), next, counts: z.record(z.string(), z.int()) })],
    [`tasks/${taskId}`, exactly(task)],
    [`tasks/${taskId}/effects`, z.strictObject({ effects: z.array(exactly(effect)).min(1) })],
    ['approvals?view=full', z.strictObject({ approvals: z.array(exactly(approval)).min(1), next })],
    ['activity?limit=100', z.strictObject({ events: z.array(exactly(controlEvent)).min(10), next: z.nullable(z.int()) })],
    ['budget', exactly(budget)],
    ['agents', z.strictObject({ agents: z.array(exactly(agent)).min(1) })],
    ['agents/sysadmin', exactly(agent)],
    ['agents/sysadmin/keys', z.strictObject({ keys: z.array(exactly(agentKey)).min(2) })],
    ['agents/sysadmin/sessions', z.strictObject({ sessions: z.array(exactly(sessionLine)).min(1) })],
    ['operators', z.strictObject({ operators: z.array(exactly(operatorToken)).min(2) })],
    ['runs', z.strictObject({ runs: z.array(exactly(listedRun)).min(1), next })],
    [`runs/${runId}`, exactly(run)],
    ['schedules', z.strictObject({ schedules: z.array(exactly(schedule)).min(1) })],
    [
      'receipts/status',
      z.strictObject({ receipts: z.array(z.strictObject({ agent_id: z.string(), receipts: z.any(), reported_at: z.any() })).min(1) }),
    ],
    [
      'state?view=full',
      z.strictObject({ agents: z.array(exactly(agent)), budget: exactly(budget), figures: z.record(z.string(), z.number()) }),
    ],
  ])
  expect(at().errors).toEqual([])
})
