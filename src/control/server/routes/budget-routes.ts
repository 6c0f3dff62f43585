/** Shows and sets the budget, and lets runs reserve and settle tokens. */

import { z } from '@hono/zod-openapi'
import { budget, budgetPatch, ledgerEntry, reservation, reserveRequest, settled, settleRequest } from '../../contract/fleet-shapes.ts'
import { addRoute } from '../access/control-route.ts'
import type { ControlApi, ControlServer } from '../control-server.ts'
import { limit, whole } from '../request-shapes.ts'

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
    summary: 'Set limits or the time zone; what is absent stays; tasks that waited for budget go on',
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
