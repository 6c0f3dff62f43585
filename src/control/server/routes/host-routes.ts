/** Answers the state of the fleet, the receipts of agents, and calls of hostd. */

import { z } from '@hono/zod-openapi'
import { json, plain } from '../../../http/answers/shapes.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import { type HostdProxy, hostdBody } from '../../hostd/hostd-proxy.ts'
import { controlRoute, prefix } from '../access/control-route.ts'
import type { ControlApi, ControlServer } from '../control-server.ts'
import { seedState } from '../seed-answers.ts'

const hostdAnswer = z.looseObject({ ok: z.boolean(), output: z.string(), exitCode: z.nullable(z.int()) })
const receipts = z.array(
  z.object({ agent_id: z.string(), receipts: z.nullable(z.record(z.string(), z.unknown())), reported_at: z.nullable(z.string()) }),
)

export function hostRoutes(app: ControlApi, server: ControlServer): void {
  const { plane } = server
  app.openapi(
    controlRoute({
      method: 'get',
      path: `${prefix}/state`,
      summary: 'The agents and the budget of today',
      request: { query: z.object({ view: z.optional(z.enum(['full', 'seed'])) }) },
      responses: { 200: json(z.union([seedState, z.looseObject({})]), 'The state; an operator sees more with ?view=full') },
    }),
    async (c) => {
      const state = await plane.seed.state(c.var.caller)
      const { caller } = c.var
      if (c.req.valid('query').view !== 'full' || caller.kind !== 'operator') return c.json(plain(state), 200)
      const [agents, budget, figures] = await Promise.all([plane.fleet.list(caller), plane.budget.get(caller), plane.figures()])
      return c.json(plain({ agents, budget, figures }), 200)
    },
  )
  app.openapi(
    controlRoute({
      method: 'get',
      path: `${prefix}/receipts/status`,
      summary: 'How the receipts of each agent stand, as its worker reported',
      responses: { 200: json(z.object({ receipts }), 'The reports') },
    }),
    async (c) => c.json({ receipts: plain(await plane.fleet.receipts(c.var.caller)) }, 200),
  )
  app.openapi(
    controlRoute({
      method: 'post',
      path: `${prefix}/hostd`,
      summary: 'Call an operation of the host',
      request: { body: json(hostdBody, 'The operation and its parameters') },
      responses: { 200: json(hostdAnswer, 'What it said'), 503: { description: 'There is no hostd' } },
    }),
    async (c) => {
      // An operation takes as long as its catalogue allows.
      c.env.connection.stay()
      return c.json(plain({ ...(await hostdOf(server).call(c.var.caller, c.req.valid('json'))) }), 200)
    },
  )
  app.openapi(
    controlRoute({
      method: 'get',
      path: `${prefix}/hostd/ops`,
      summary: 'The operations of the host, with their risk and whether they are available',
      responses: { 200: json(z.object({ ops: z.array(z.looseObject({ op: z.string() })) }), 'The operations') },
    }),
    async (c) => c.json({ ops: (await hostdOf(server).operations(c.var.caller)).map((each) => ({ ...each })) }, 200),
  )
}

function hostdOf({ hostd }: ControlServer): HostdProxy {
  if (hostd) return hostd
  throw new PlaneRefusal('unavailable', 'this control plane has no hostd; start "braidclaw hostd" and set CONTROLPLANE_HOSTD_SOCKET')
}
