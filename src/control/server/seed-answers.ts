/** Describes the answers of the seed's routes, for /openapi.json; the plane gives them in exactly this order of keys. */

import { z } from '@hono/zod-openapi'

export const seedState = z.object({
  agents: z.array(z.object({ id: z.string(), role: z.string(), heartbeat_enabled: z.boolean() })),
  budget: z.object({
    daily_tokens: z.int(),
    spent_today: z.int(),
    remaining: z.int(),
    hard_limit_exceeded: z.boolean(),
    allocation: z.record(z.string(), z.int()),
  }),
})

export const seedTasks = z.object({
  tasks: z.array(
    z.object({
      task_id: z.string(),
      title: z.string(),
      description: z.string(),
      assigned_to: z.string(),
      priority: z.string(),
      status: z.string(),
      created_at: z.string(),
      context: z.record(z.string(), z.unknown()),
    }),
  ),
})

const asked = { approval_id: z.string(), operation: z.string() }
export const seedApprovals = z.object({
  pending: z.array(z.object({ ...asked, task_id: z.nullable(z.string()), estimated_tokens: z.int(), operator_approved: z.literal(false) })),
  approved: z.array(z.object({ ...asked, operator_approved: z.literal(true), approved_at: z.string() })),
})
