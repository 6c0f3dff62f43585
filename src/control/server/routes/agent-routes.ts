/** Lists and changes agents: who they are, whether they are paused, what their workers report, and what they did last. */

import { z } from '@hono/zod-openapi'
import { json, plain } from '../../../http/answers/shapes.ts'
import { agent, agentDraft, agentPatch } from '../../contract/fleet-shapes.ts'
import { sessionLine } from '../../contract/run-shapes.ts'
import { jsonObject } from '../../contract/task-shapes.ts'
import { controlRoute, prefix } from '../access/control-route.ts'
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
  app.openapi(
    controlRoute({
      method: 'get',
      path: `${prefix}/agents`,
      summary: 'All agents',
      responses: { 200: json(z.object({ agents: z.array(agent) }), 'The agents') },
    }),
    async (c) => c.json({ agents: plain(await fleet.list(c.var.caller)) }, 200),
  )
  app.openapi(
    controlRoute({
      method: 'post',
      path: `${prefix}/agents`,
      summary: 'Add an agent; it gets no key yet',
      request: { body: json(agentDraft, 'The agent') },
      responses: { 201: json(agent, 'The agent'), 409: { description: 'There is one with this id' } },
    }),
    async (c) => c.json(plain(await fleet.add(c.var.caller, c.req.valid('json'))), 201),
  )
  app.openapi(
    controlRoute({
      method: 'get',
      path: `${prefix}/agents/{id}`,
      summary: 'One agent',
      request: { params: agentAt },
      responses: { 200: json(agent, 'The agent') },
    }),
    async (c) => c.json(plain(await fleet.get(c.var.caller, c.req.valid('param').id)), 200),
  )
  app.openapi(
    controlRoute({
      method: 'patch',
      path: `${prefix}/agents/{id}`,
      summary: 'Change an agent',
      request: { params: agentAt, body: json(agentPatch, 'What changes') },
      responses: { 200: json(agent, 'The agent now') },
    }),
    async (c) => c.json(plain(await fleet.edit(c.var.caller, c.req.valid('param').id, c.req.valid('json'))), 200),
  )
  app.openapi(
    controlRoute({
      method: 'delete',
      path: `${prefix}/agents/{id}`,
      summary: 'Remove an agent with its keys; what it did stays recorded',
      request: { params: agentAt },
      responses: { 200: json(removed, 'It is gone'), 409: { description: 'It holds a task' } },
    }),
    async (c) => {
      await fleet.remove(c.var.caller, c.req.valid('param').id)
      return c.json({ removed: true } as const, 200)
    },
  )
  app.openapi(
    controlRoute({
      method: 'post',
      path: `${prefix}/agents/{id}/pause`,
      summary: 'Pause an agent: it claims nothing more',
      request: { params: agentAt, body: json(pauseRequest, 'Why') },
      responses: { 200: json(agent, 'The agent now') },
    }),
    async (c) => c.json(plain(await fleet.pause(c.var.caller, c.req.valid('param').id, c.req.valid('json').reason)), 200),
  )
  for (const what of ['resume', 'wake'] as const)
    app.openapi(
      controlRoute({
        method: 'post',
        path: `${prefix}/agents/{id}/${what}`,
        summary: what === 'resume' ? 'End the pause of an agent' : 'Have the worker of an agent look for work at once',
        request: { params: agentAt, body: json(nothing, 'Nothing') },
        responses: { 200: json(agent, 'The agent now') },
      }),
      async (c) => c.json(plain(await fleet[what](c.var.caller, c.req.valid('param').id)), 200),
    )
  app.openapi(
    controlRoute({
      method: 'post',
      path: `${prefix}/agents/{id}/report`,
      summary: 'What a worker says of itself and of its receipts',
      request: { params: agentAt, body: json(report, 'The report') },
      responses: { 200: json(agent, 'The agent, with what an operator decided about it') },
    }),
    async (c) => {
      const { worker, receipts } = c.req.valid('json')
      return c.json(plain(await fleet.report(c.var.caller, c.req.valid('param').id, worker, receipts)), 200)
    },
  )
  app.openapi(
    controlRoute({
      method: 'get',
      path: `${prefix}/agents/{id}/sessions`,
      summary: 'The last session lines of an agent, oldest first',
      request: { params: agentAt, query: z.object({ limit: limit(20) }) },
      responses: { 200: json(z.object({ sessions: z.array(sessionLine) }), 'The lines') },
    }),
    async (c) => {
      const { id } = c.req.valid('param')
      return c.json({ sessions: plain(await plane.runs.sessions(c.var.caller, id, c.req.valid('query').limit)) }, 200)
    },
  )
  app.openapi(
    controlRoute({
      method: 'post',
      path: `${prefix}/agents/{id}/sessions`,
      summary: 'Add a session line',
      request: { params: agentAt, body: json(line, 'The line') },
      responses: { 201: json(z.object({ ok: z.literal(true) }), 'It is kept') },
    }),
    async (c) => {
      reports.take(c.var.caller)
      await plane.runs.addSession(c.var.caller, c.req.valid('param').id, c.req.valid('json'))
      return c.json({ ok: true } as const, 201)
    },
  )
}
