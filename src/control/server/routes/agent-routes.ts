/** Lists and changes agents: who they are, whether they are paused, what their workers report, and what they did last. */

import { z } from '@hono/zod-openapi'
import { agent, agentDraft, agentPatch } from '../../contract/fleet-shapes.ts'
import { sessionLine } from '../../contract/run-shapes.ts'
import { jsonObject } from '../../contract/task-shapes.ts'
import { addRoute } from '../access/control-route.ts'
import { createReportRate } from '../access/report-rate.ts'
import type { ControlApi, ControlServer } from '../control-server.ts'
import { agentAt, limit, nothing, removed } from '../request-shapes.ts'

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
  const reports = createReportRate(now)
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
    gives: [removed, 'It is gone'],
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
    summary: 'What a worker says of itself and of its receipts',
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
      reports.take(caller)
      await plane.runs.addSession(caller, params.id, body)
      return { ok: true } as const
    },
  })
}
