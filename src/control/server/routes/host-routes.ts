/** Answers the state of the fleet, the receipts of agents, and calls of hostd. */

import { z } from '@hono/zod-openapi'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import { type HostdProxy, hostdBody } from '../../hostd/hostd-proxy.ts'
import { addRoute } from '../access/control-route.ts'
import type { ControlApi, ControlServer } from '../control-server.ts'

const hostdAnswer = z.looseObject({ ok: z.boolean(), output: z.string(), exitCode: z.nullable(z.int()) })
const receipts = z.array(
  z.object({ agent_id: z.string(), receipts: z.nullable(z.record(z.string(), z.unknown())), reported_at: z.nullable(z.string()) }),
)

/** As the seed answers; the plane gives it in exactly this order of keys. */
const seedState = z.object({
  agents: z.array(z.object({ id: z.string(), role: z.string(), heartbeat_enabled: z.boolean() })),
  budget: z.object({
    daily_tokens: z.int(),
    spent_today: z.int(),
    remaining: z.int(),
    hard_limit_exceeded: z.boolean(),
    allocation: z.record(z.string(), z.int()),
  }),
})

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
    gives: [hostdAnswer, 'What it said'],
    others: { 503: 'There is no hostd' },
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
