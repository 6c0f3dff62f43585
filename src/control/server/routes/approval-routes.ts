/** Lists questions to operators, takes their decisions, and gives an approved operation to the one who may use it. */

import { z } from '@hono/zod-openapi'
import { approval, approvedOperation, decisionRequest } from '../../contract/approval-shapes.ts'
import { addRoute } from '../access/control-route.ts'
import type { ControlApi, ControlServer } from '../control-server.ts'
import { approvalAt, approvalListQuery, assertFullView, isSeedQuery } from '../request-shapes.ts'

const page = z.object({ approvals: z.array(approval), next: z.nullable(z.string()) })
const use = z.strictObject({ digest: z.optional(z.string().regex(/^[0-9a-f]{64}$/, 'a digest is 64 hex digits')) })

const asked = { approval_id: z.string(), operation: z.string() }
/** As the seed answers; the plane gives it in exactly this order of keys. */
const seedApprovals = z.object({
  pending: z.array(z.object({ ...asked, task_id: z.nullable(z.string()), estimated_tokens: z.int(), operator_approved: z.literal(false) })),
  approved: z.array(z.object({ ...asked, operator_approved: z.literal(true), approved_at: z.string() })),
})

export function approvalRoutes(app: ControlApi, { plane }: ControlServer): void {
  const query = approvalListQuery()
  addRoute(app, 'get', '/approvals', {
    summary: 'Approvals: with ?agent_id= alone those of that agent, pending and approved, else a page of all that match',
    query,
    gives: [z.union([seedApprovals, page]), 'The approvals; "next" is the "after" of the next page'],
    async answer({ caller, query: { view: _, ...asked }, spelled }) {
      if (isSeedQuery(spelled(), Object.keys(query.shape), 'agent_id')) return await plane.seed.approvals(caller, asked.agent_id)
      assertFullView(caller)
      return await plane.approvals.list(caller, asked)
    },
  })
  addRoute(app, 'get', '/approvals/{id}', {
    summary: 'One approval',
    params: approvalAt,
    gives: [approval, 'The approval'],
    answer: ({ caller, params }) => plane.approvals.get(caller, params.id),
  })
  addRoute(app, 'post', '/approvals/{id}/decision', {
    summary: 'Approve, reject or ask for another plan; the task that waits goes on in the same transaction',
    params: approvalAt,
    body: [decisionRequest, 'The decision'],
    gives: [approval, 'It counts'],
    others: { 409: 'It was decided before; details say how' },
    answer: ({ caller, params, body }) => plane.approvals.decide(caller, params.id, body),
  })
  addRoute(app, 'post', '/approvals/{id}/use', {
    summary: 'Use an approval, once: the operation exactly as it was approved',
    params: approvalAt,
    body: [use, 'The digest of what is about to be done'],
    gives: [approvedOperation, 'Do exactly this'],
    others: { 409: 'Used, expired, or another operation' },
    answer: ({ caller, params, body }) => plane.approvals.use(caller, params.id, body.digest),
  })
}
