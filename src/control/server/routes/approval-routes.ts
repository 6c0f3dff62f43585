/** Lists questions to operators, takes their decisions, and gives an approved operation to the one who may use it. */

import { z } from '@hono/zod-openapi'
import { json, plain } from '../../../http/answers/shapes.ts'
import { approval, approvedOperation, decisionRequest } from '../../contract/approval-shapes.ts'
import { controlRoute, prefix } from '../access/control-route.ts'
import type { ControlApi, ControlServer } from '../control-server.ts'
import { approvalAt, approvalListQuery, assertFullView, isSeedQuery } from '../request-shapes.ts'
import { seedApprovals } from '../seed-answers.ts'

const page = z.object({ approvals: z.array(approval), next: z.nullable(z.string()) })
const use = z.strictObject({ digest: z.optional(z.string().regex(/^[0-9a-f]{64}$/, 'a digest is 64 hex digits')) })

export function approvalRoutes(app: ControlApi, { plane }: ControlServer): void {
  const query = approvalListQuery()
  app.openapi(
    controlRoute({
      method: 'get',
      path: `${prefix}/approvals`,
      summary: 'Approvals: with ?agent_id= alone those of that agent, pending and approved, else a page of all that match',
      request: { query },
      responses: { 200: json(z.union([seedApprovals, page]), 'The approvals; "next" is the "after" of the next page') },
    }),
    async (c) => {
      const { view: _, ...asked } = c.req.valid('query')
      if (isSeedQuery(c.req.query(), Object.keys(query.shape), 'agent_id'))
        return c.json(plain(await plane.seed.approvals(c.var.caller, asked.agent_id)), 200)
      assertFullView(c.var.caller)
      return c.json(plain(await plane.approvals.list(c.var.caller, asked)), 200)
    },
  )
  app.openapi(
    controlRoute({
      method: 'get',
      path: `${prefix}/approvals/{id}`,
      summary: 'One approval',
      request: { params: approvalAt },
      responses: { 200: json(approval, 'The approval') },
    }),
    async (c) => c.json(plain(await plane.approvals.get(c.var.caller, c.req.valid('param').id)), 200),
  )
  app.openapi(
    controlRoute({
      method: 'post',
      path: `${prefix}/approvals/{id}/decision`,
      summary: 'Approve, reject or ask for another plan; the task that waits goes on in the same transaction',
      request: { params: approvalAt, body: json(decisionRequest, 'The decision') },
      responses: { 200: json(approval, 'It counts'), 409: { description: 'It was decided before; details say how' } },
    }),
    async (c) => c.json(plain(await plane.approvals.decide(c.var.caller, c.req.valid('param').id, c.req.valid('json'))), 200),
  )
  app.openapi(
    controlRoute({
      method: 'post',
      path: `${prefix}/approvals/{id}/use`,
      summary: 'Use an approval, once: the operation exactly as it was approved',
      request: { params: approvalAt, body: json(use, 'The digest of what is about to be done') },
      responses: { 200: json(approvedOperation, 'Do exactly this'), 409: { description: 'Used, expired, or another operation' } },
    }),
    async (c) => c.json(plain(await plane.approvals.use(c.var.caller, c.req.valid('param').id, c.req.valid('json').digest)), 200),
  )
}
