/** Shapes of approvals: a question to an operator, its one answer, and its one use. */

import { z } from 'zod'
import { approvalStates } from './state-names.ts'
import { name, taskId } from './task-shapes.ts'

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
  /** What exactly was asked, for example a hostd operation with its parameters; part of `digest`. */
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

/** What `POST approvals/{id}/use` answers: the operation exactly as it was approved. */
export const approvedOperation = z.object({
  approval_id: approvalId,
  operation: z.string(),
  details: z.record(z.string(), z.unknown()),
  digest: z.string(),
  note: z.nullable(z.string()),
})
export type ApprovedOperation = z.infer<typeof approvedOperation>
