/** Shows and sets the budget, and lets runs reserve and settle tokens. */

import { z } from '@hono/zod-openapi'
import { json, plain } from '../../../http/answers/shapes.ts'
import { budget, budgetPatch, ledgerEntry, reservation, reserveRequest, settled, settleRequest } from '../../contract/fleet-shapes.ts'
import { controlRoute, prefix } from '../access/control-route.ts'
import type { ControlApi, ControlServer } from '../control-server.ts'
import { limit, whole } from '../request-shapes.ts'

export function budgetRoutes(app: ControlApi, { plane }: ControlServer): void {
  app.openapi(
    controlRoute({
      method: 'get',
      path: `${prefix}/budget`,
      summary: 'What was spent and reserved today, by role and agent, against the limits',
      responses: { 200: json(budget, 'The budget') },
    }),
    async (c) => c.json(plain(await plane.budget.get(c.var.caller)), 200),
  )
  app.openapi(
    controlRoute({
      method: 'get',
      path: `${prefix}/budget/ledger`,
      summary: 'Every token that was counted, oldest first',
      request: { query: z.object({ after: whole(1e15).default(0), limit: limit() }) },
      responses: { 200: json(z.object({ entries: z.array(ledgerEntry), next: z.nullable(z.int()) }), 'The entries; "next" continues') },
    }),
    async (c) => c.json(plain(await plane.budget.ledger(c.var.caller, c.req.valid('query'))), 200),
  )
  app.openapi(
    controlRoute({
      method: 'put',
      path: `${prefix}/budget`,
      summary: 'Set limits or the time zone; what is absent stays; tasks that waited for budget go on',
      request: { body: json(budgetPatch, 'What changes') },
      responses: { 200: json(budget, 'The budget now') },
    }),
    async (c) => c.json(plain(await plane.budget.set(c.var.caller, c.req.valid('json'))), 200),
  )
  app.openapi(
    controlRoute({
      method: 'post',
      path: `${prefix}/budget/reserve`,
      summary: 'Reserve tokens before they are spent',
      request: { body: json(reserveRequest, 'How many') },
      responses: { 200: json(reservation, 'They are held'), 402: { description: 'budget_exceeded: a limit is reached' } },
    }),
    async (c) => c.json(plain(await plane.budget.reserve(c.var.caller, c.req.valid('json'))), 200),
  )
  app.openapi(
    controlRoute({
      method: 'post',
      path: `${prefix}/budget/settle`,
      summary: 'Say what a reservation really cost',
      request: { body: json(settleRequest, 'The cost') },
      responses: { 200: json(settled, 'It is counted') },
    }),
    async (c) => c.json(plain(await plane.budget.settle(c.var.caller, c.req.valid('json'))), 200),
  )
}
