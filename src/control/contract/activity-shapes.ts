/** Defines activity (what agents post), approvals, events (what happened) and the answers of the seed's routes, as they travel as JSON. */

import { z } from 'zod'
import { approvalStates } from './state-names.ts'
import { jsonObject, name, runId, taskId } from './task-shapes.ts'

/** Replaces a NUL, which PostgreSQL stores in no text, and half of a character by U+FFFD: agents pass on whatever programs print. */
const text = (most: number, least = 0) =>
  z
    .string()
    .min(least)
    .max(most)
    .overwrite((value) => value.toWellFormed().replaceAll('\0', '\u{fffd}'))
/** A report of more is wrong, and could use up limits that an operator cannot raise above it. */
const tokens = z.int().min(0).max(1e9)

/** Describes the seed's three posts. It ignores unknown fields, because a client written after the seed may send more. */
export const activityPost = z.discriminatedUnion('event_type', [
  z.object({
    event_type: z.literal('task_completed'),
    task_id: taskId,
    agent_id: name,
    skill_executed: z.optional(text(200)),
    result: z.object({ status: text(64), output: z._default(text(1_000_000), ''), tokens_used: z._default(tokens, 0) }).loose(),
  }),
  z.object({
    event_type: z.literal('approval_request'),
    agent_id: name,
    task_id: z.optional(taskId),
    operation: text(2_000, 1),
    reasoning: z._default(text(8_192), ''),
    estimated_tokens: z._default(tokens, 0),
    /** BraidClaw's addition: a use of the approval must repeat it. */
    details: z.optional(jsonObject),
  }),
  z.object({
    event_type: z.literal('error'),
    agent_id: name,
    task_id: z.optional(taskId),
    error_message: text(8_192, 1),
    action_taken: z._default(text(2_000), ''),
    tokens_used: z._default(tokens, 0),
  }),
])
export type ActivityPost = z.infer<typeof activityPost>
export const activityReply = z.object({
  ok: z.literal(true),
  activity_id: z.int(),
  task_id: z.nullable(z.string()),
  approval_id: z.nullable(z.string()),
  escalation_task_id: z.nullable(z.string()),
})
export type ActivityReply = z.infer<typeof activityReply>

/** `id` strictly increases and is the id of the SSE event. `type` is `entity.happening`, for example task.completed. */
export const controlEvent = z.object({
  id: z.int(),
  at: z.string(),
  type: z.string(),
  actor: z.string(),
  task_id: z.nullable(z.string()),
  run_id: z.nullable(z.string()),
  agent_id: z.nullable(z.string()),
  role: z.nullable(z.string()),
  data: z.record(z.string(), z.unknown()),
})
export type ControlEvent = z.infer<typeof controlEvent>

export const eventQuery = z.object({
  after: z.optional(z.coerce.number().int().min(0)),
  before: z.optional(z.coerce.number().int().min(0)),
  type: z.optional(text(64)),
  task_id: z.optional(taskId),
  run_id: z.optional(runId),
  agent_id: z.optional(name),
  limit: z.coerce.number().int().min(1).max(200).default(50),
})
export type EventQuery = z.infer<typeof eventQuery>

/** Has exactly the seed's keys; the plane returns them in the seed's order. Times have no milliseconds: 2026-04-07T10:30:00Z. */
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
export type SeedState = z.infer<typeof seedState>
export const seedTask = z.object({
  task_id: z.string(),
  title: z.string(),
  description: z.string(),
  assigned_to: z.string(),
  priority: z.string(),
  status: z.string(),
  created_at: z.string(),
  context: z.record(z.string(), z.unknown()),
})
export type SeedTask = z.infer<typeof seedTask>
const asked = { approval_id: z.string(), operation: z.string() }
export const seedApprovals = z.object({
  pending: z.array(z.object({ ...asked, task_id: z.nullable(z.string()), estimated_tokens: z.int(), operator_approved: z.literal(false) })),
  approved: z.array(z.object({ ...asked, operator_approved: z.literal(true), approved_at: z.string() })),
})
export type SeedApprovals = z.infer<typeof seedApprovals>

export const approvalId = z.string().regex(/^APPR-\d{1,15}$/, 'an approval id looks like APPR-001')

export const approval = z.object({
  approval_id: approvalId,
  task_id: z.nullable(z.string()),
  run_id: z.nullable(z.string()),
  agent_id: z.string(),
  role: z.nullable(z.string()),
  operation: z.string(),
  reasoning: z.string(),
  estimated_tokens: z.int(),
  /** Holds exactly the requested operation, for example of hostd with its parameters; part of `digest`. */
  details: z.record(z.string(), z.unknown()),
  /** SHA-256 of the canonical JSON of operation and details: a use must repeat it. */
  digest: z.string(),
  state: z.enum(approvalStates),
  note: z.nullable(z.string()),
  decided_by: z.nullable(z.string()),
  decided_at: z.nullable(z.string()),
  used_at: z.nullable(z.string()),
  created_at: z.string(),
  expires_at: z.string(),
})
export type Approval = z.infer<typeof approval>

export const decisionRequest = z.strictObject({
  decision: z.enum(['approve', 'reject', 'revise']),
  note: z.string().max(4_000).default(''),
})
export type DecisionRequest = z.infer<typeof decisionRequest>

export const approvalQuery = z.object({
  state: z.optional(z.enum(approvalStates)),
  agent_id: z.optional(name),
  task_id: z.optional(taskId),
  limit: z.int().min(1).max(200).default(50),
  after: z.optional(approvalId),
})
export type ApprovalQuery = z.infer<typeof approvalQuery>

/** `POST approvals/{id}/use` answers with it: the operation exactly as the operator approved it. */
export const approvedOperation = z.object({
  approval_id: approvalId,
  operation: z.string(),
  details: z.record(z.string(), z.unknown()),
  digest: z.string(),
  note: z.nullable(z.string()),
})
export type ApprovedOperation = z.infer<typeof approvedOperation>
