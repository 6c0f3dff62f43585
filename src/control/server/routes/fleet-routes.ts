/** Lists and changes what an operator gives a fleet (agents, keys, operators, budgets, schedules), and calls hostd. */

import { z } from '@hono/zod-openapi'
import { seedState } from '../../contract/activity-shapes.ts'
import {
  agent,
  agentDraft,
  agentKey,
  agentPatch,
  budget,
  budgetPatch,
  identity,
  ledgerEntry,
  newAgentKey,
  newOperatorToken,
  operatorToken,
  reservation,
  reserveRequest,
  settled,
  settleRequest,
} from '../../contract/fleet-shapes.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import { sessionLine } from '../../contract/run-shapes.ts'
import { jsonObject, name, schedule, scheduleDraft } from '../../contract/task-shapes.ts'
import { type HostdProxy, hostdBody } from '../../hostd/hostd-proxy.ts'
import { addRoute, type ControlApi, type ControlServer } from '../control-route.ts'
import { createReportRate } from '../counters.ts'
import { agentAt, keyAt, limit, madeAt, nothing, removed, whole } from '../request-shapes.ts'

const hostdAnswer = z.looseObject({ ok: z.boolean(), output: z.string(), exitCode: z.nullable(z.int()) })
const receipts = z.array(
  z.object({ agent_id: z.string(), receipts: z.nullable(z.record(z.string(), z.unknown())), reported_at: z.nullable(z.string()) }),
)

export function hostRoutes(app: ControlApi, server: ControlServer): void {
  const { plane } = server
  addRoute(app, 'get', '/state', {
    summary: 'The agents and the budget of today',
    query: z.object({ view: z.optional(z.enum(['full', 'seed'])) }),
    gives: [z.union([seedState, z.looseObject({})]), 'The state; an operator sees more with ?view=full'],
    async answer({ caller, query }) {
      const state = await plane.seed.state(caller)
      if (query.view !== 'full' || caller.kind !== 'operator') return state
      const [agents, budget, figures] = await Promise.all([plane.fleet.list(caller), plane.budget.get(caller), plane.figures()])
      return { agents, budget, figures }
    },
  })
  addRoute(app, 'get', '/receipts/status', {
    summary: 'How the receipts of each agent stand, as its worker reported',
    gives: [z.object({ receipts }), 'The reports'],
    answer: async ({ caller }) => ({ receipts: await plane.fleet.receipts(caller) }),
  })
  addRoute(app, 'post', '/hostd', {
    summary: 'Call an operation of the host',
    body: [hostdBody, 'The operation and its parameters'],
    gives: [hostdAnswer, 'The result'],
    others: { 503: 'This control plane has no hostd' },
    async answer({ caller, body, env }) {
      // An operation takes as long as its catalogue allows.
      env.connection.stay()
      return { ...(await hostdOf(server).call(caller, body)) }
    },
  })
  addRoute(app, 'get', '/hostd/ops', {
    summary: 'The operations of the host, with their risk and whether they are available',
    gives: [z.object({ ops: z.array(z.looseObject({ op: z.string() })) }), 'The operations'],
    answer: async ({ caller }) => ({ ops: (await hostdOf(server).operations(caller)).map((each) => ({ ...each })) }),
  })
}

function hostdOf({ hostd }: ControlServer): HostdProxy {
  if (hostd) return hostd
  throw new PlaneRefusal('unavailable', 'this control plane has no hostd; start "braidclaw hostd" and set CONTROLPLANE_HOSTD_SOCKET')
}

const pauseRequest = z.strictObject({ reason: z.string().max(500).default('') })
const report = z.strictObject({ worker: jsonObject, receipts: z.optional(jsonObject) })
const line = z.strictObject({
  timestamp: z.string().max(40),
  task: z.string().max(2_000),
  skill: z.string().max(200),
  outcome: z.string().max(8_192),
  tokens_used: z.int().min(0).max(1e12),
})

export function agentRoutes(app: ControlApi, { plane, now }: ControlServer): void {
  const { fleet } = plane
  const countReport = createReportRate(now)
  addRoute(app, 'get', '/agents', {
    summary: 'All agents',
    gives: [z.object({ agents: z.array(agent) }), 'The agents'],
    answer: async ({ caller }) => ({ agents: await fleet.list(caller) }),
  })
  addRoute(app, 'post', '/agents', {
    summary: 'Add an agent; it gets no key yet',
    body: [agentDraft, 'The agent'],
    gives: [agent, 'The agent'],
    status: 201,
    others: { 409: 'There is one with this id' },
    answer: ({ caller, body }) => fleet.add(caller, body),
  })
  addRoute(app, 'get', '/agents/{id}', {
    summary: 'One agent',
    params: agentAt,
    gives: [agent, 'The agent'],
    answer: ({ caller, params }) => fleet.get(caller, params.id),
  })
  addRoute(app, 'patch', '/agents/{id}', {
    summary: 'Change an agent',
    params: agentAt,
    body: [agentPatch, 'What changes'],
    gives: [agent, 'The agent now'],
    answer: ({ caller, params, body }) => fleet.edit(caller, params.id, body),
  })
  addRoute(app, 'delete', '/agents/{id}', {
    summary: 'Remove an agent with its keys; what it did stays recorded',
    params: agentAt,
    gives: [removed, 'It is removed'],
    others: { 409: 'It holds a task' },
    answer: async ({ caller, params }) => {
      await fleet.remove(caller, params.id)
      return { removed: true } as const
    },
  })
  addRoute(app, 'post', '/agents/{id}/pause', {
    summary: 'Pause an agent: it claims nothing more',
    params: agentAt,
    body: [pauseRequest, 'Why'],
    gives: [agent, 'The agent now'],
    answer: ({ caller, params, body }) => fleet.pause(caller, params.id, body.reason),
  })
  for (const what of ['resume', 'wake'] as const)
    addRoute(app, 'post', `/agents/{id}/${what}`, {
      summary: what === 'resume' ? 'End the pause of an agent' : 'Have the worker of an agent look for work at once',
      params: agentAt,
      body: [nothing, 'Nothing'],
      gives: [agent, 'The agent now'],
      answer: ({ caller, params }) => fleet[what](caller, params.id),
    })
  addRoute(app, 'post', '/agents/{id}/report', {
    summary: 'The report of a worker about itself and its receipts',
    params: agentAt,
    body: [report, 'The report'],
    gives: [agent, 'The agent, with what an operator decided about it'],
    answer: ({ caller, params, body }) => fleet.report(caller, params.id, body.worker, body.receipts),
  })
  addRoute(app, 'get', '/agents/{id}/sessions', {
    summary: 'The last session lines of an agent, oldest first',
    params: agentAt,
    query: z.object({ limit: limit(20) }),
    gives: [z.object({ sessions: z.array(sessionLine) }), 'The lines'],
    answer: async ({ caller, params, query }) => ({ sessions: await plane.runs.sessions(caller, params.id, query.limit) }),
  })
  addRoute(app, 'post', '/agents/{id}/sessions', {
    summary: 'Add a session line',
    params: agentAt,
    body: [line, 'The line'],
    gives: [z.object({ ok: z.literal(true) }), 'It is kept'],
    status: 201,
    answer: async ({ caller, params, body }) => {
      countReport(caller)
      await plane.runs.addSession(caller, params.id, body)
      return { ok: true } as const
    },
  })
}

const newOperator = z.strictObject({ name })
const madeKey = { params: agentAt, body: [nothing, 'Nothing'], gives: [newAgentKey, 'The key'], status: 201, replay: 'secret' } as const

/** Makes and revokes secrets, each shown once: the keys of agents and the tokens of operators; and names the owner of a secret. */
export function keyRoutes(app: ControlApi, { plane }: ControlServer): void {
  const { fleet, access } = plane
  addRoute(app, 'get', '/whoami', {
    summary: 'Whose credential is this, and at which control plane? A worker asks for its agent and role',
    gives: [identity, 'The sender'],
    answer: ({ caller }) => access.identityOf(caller),
  })
  addRoute(app, 'get', '/agents/{id}/keys', {
    summary: 'The keys of an agent, without their secrets',
    params: agentAt,
    gives: [z.object({ keys: z.array(agentKey) }), 'The keys'],
    answer: async ({ caller, params }) => ({ keys: await fleet.keys(caller, params.id) }),
  })
  addRoute(app, 'post', '/agents/{id}/keys', {
    summary: 'Make a key; its secret is shown this once',
    ...madeKey,
    answer: ({ caller, params, signal }) => fleet.newKey(caller, params.id, signal),
  })
  addRoute(app, 'post', '/agents/{id}/keys/rotate', {
    summary: 'Make a key and revoke all others; running leases stay',
    ...madeKey,
    answer: ({ caller, params, signal }) => fleet.rotateKey(caller, params.id, signal),
  })
  addRoute(app, 'delete', '/agents/{id}/keys/{keyId}', {
    summary: 'Revoke a key; the leases of the agent are released',
    params: keyAt,
    gives: [agentKey, 'It is revoked'],
    answer: ({ caller, params }) => fleet.revokeKey(caller, params.id, params.keyId),
  })
  addRoute(app, 'get', '/operators', {
    summary: 'The tokens of operators, without their secrets',
    gives: [z.object({ operators: z.array(operatorToken) }), 'The tokens'],
    answer: async ({ caller }) => ({ operators: await access.operators(caller) }),
  })
  addRoute(app, 'post', '/operators', {
    summary: 'Make an operator token; its secret is shown this once',
    body: [newOperator, 'For whom'],
    gives: [newOperatorToken, 'The token'],
    status: 201,
    replay: 'secret',
    answer: ({ caller, body, signal }) => access.newOperator(caller, body.name, signal),
  })
  addRoute(app, 'delete', '/operators/{id}', {
    summary: 'Revoke an operator token; its sessions end with it',
    params: madeAt,
    gives: [operatorToken, 'It is revoked'],
    others: { 409: 'It is the last one' },
    answer: ({ caller, params }) => access.revokeOperator(caller, params.id),
  })
}

export function budgetRoutes(app: ControlApi, { plane }: ControlServer): void {
  addRoute(app, 'get', '/budget', {
    summary: 'What was spent and reserved today, by role and agent, against the limits',
    gives: [budget, 'The budget'],
    answer: ({ caller }) => plane.budget.get(caller),
  })
  addRoute(app, 'get', '/budget/ledger', {
    summary: 'Every token that was counted, oldest first',
    query: z.object({ after: whole(1e15).default(0), limit: limit() }),
    gives: [z.object({ entries: z.array(ledgerEntry), next: z.nullable(z.int()) }), 'The entries; "next" continues'],
    answer: ({ caller, query }) => plane.budget.ledger(caller, query),
  })
  addRoute(app, 'put', '/budget', {
    summary: 'Set limits or the time zone; absent fields keep their value; tasks that waited for budget continue',
    body: [budgetPatch, 'What changes'],
    gives: [budget, 'The budget now'],
    answer: ({ caller, body }) => plane.budget.set(caller, body),
  })
  addRoute(app, 'post', '/budget/reserve', {
    summary: 'Reserve tokens before they are spent',
    body: [reserveRequest, 'How many'],
    gives: [reservation, 'They are held'],
    others: { 402: 'budget_exceeded: a limit is reached' },
    answer: ({ caller, body }) => plane.budget.reserve(caller, body),
  })
  addRoute(app, 'post', '/budget/settle', {
    summary: 'Say what a reservation really cost',
    body: [settleRequest, 'The cost'],
    gives: [settled, 'It is counted'],
    answer: ({ caller, body }) => plane.budget.settle(caller, body),
  })
}

export function scheduleRoutes(app: ControlApi, { plane }: ControlServer): void {
  const { schedules } = plane
  addRoute(app, 'get', '/schedules', {
    summary: 'All schedules',
    gives: [z.object({ schedules: z.array(schedule) }), 'The schedules'],
    answer: async ({ caller }) => ({ schedules: await schedules.list(caller) }),
  })
  addRoute(app, 'post', '/schedules', {
    summary: 'Add a schedule that makes a task by the clock',
    body: [scheduleDraft, 'When, and which task'],
    gives: [schedule, 'The schedule'],
    status: 201,
    others: { 409: 'There is one with this name' },
    answer: ({ caller, body }) => schedules.add(caller, body),
  })
  for (const what of ['enable', 'disable'] as const)
    addRoute(app, 'post', `/schedules/{id}/${what}`, {
      summary: what === 'enable' ? 'Let a schedule make tasks' : 'Let a schedule make no tasks',
      params: madeAt,
      body: [nothing, 'Nothing'],
      gives: [schedule, 'The schedule now'],
      answer: ({ caller, params }) => schedules.setEnabled(caller, params.id, what === 'enable'),
    })
  addRoute(app, 'delete', '/schedules/{id}', {
    summary: 'Remove a schedule; its tasks stay',
    params: madeAt,
    gives: [removed, 'It is removed'],
    answer: async ({ caller, params }) => {
      await schedules.remove(caller, params.id)
      return { removed: true } as const
    },
  })
}
