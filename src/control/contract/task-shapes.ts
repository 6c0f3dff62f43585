/** Defines tasks, claims, leases, effects and schedules as they travel as JSON. Times are ISO 8601 in UTC with milliseconds unless the seed says otherwise. */

import { z } from 'zod'
import { blockedReasons, priorities, taskStatuses } from './state-names.ts'

/** Names of roles, agents and labels are visible, short, and safe in paths, tmux and shells. */
export const name = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'a name is 1 to 64 letters, digits, ".", "_" or "-", and begins with a letter or digit')
export const taskId = z.string().regex(/^TASK-\d{1,15}$/, 'a task id looks like TASK-001')
export const runId = z.string().regex(/^RUN-\d{1,15}$/, 'a run id looks like RUN-001')
const time = z.iso.datetime({ offset: true })
const text = (most: number, least = 0) =>
  z
    .string()
    .min(least)
    .max(most)
    .refine((value) => !value.includes('\0'), 'the text has a NUL character')
/** Any JSON object; at most 64 KiB as text. */
export const jsonObject = z
  .record(z.string().max(256), z.unknown())
  .refine((value) => JSON.stringify(value).length <= 65_536, 'more than 64 KiB of JSON')

export const taskDraft = z.strictObject({
  title: text(500, 1),
  description: z._default(text(65_536), ''),
  /** The role that may claim it. */
  role: name,
  /** Restricts the claim to this agent. */
  agent_id: z.optional(name),
  priority: z.enum(priorities).default('medium'),
  labels: z.array(name).max(32).default([]),
  depends_on: z.array(taskId).max(64).default([]),
  context: z._default(jsonObject, {}),
  /** It does not run before this time. */
  available_at: z.optional(time),
  max_attempts: z.int().min(1).max(100).default(3),
  /** All attempts together may spend at most this many tokens. */
  budget_tokens: z.optional(z.int().min(0).max(1e12)),
  parent_task_id: z.optional(taskId),
  /** A command that must exit with 0 in the copy of each attempt that says it is done. */
  check: z.optional(text(4_096, 1)),
})
export type TaskDraft = z.infer<typeof taskDraft>

/** Describes a PATCH: an absent field keeps its value. Allowed while the task is open and not running; priority and labels also while it is running. */
export const taskPatch = z.strictObject({
  title: z.optional(text(500, 1)),
  description: z.optional(text(65_536)),
  role: z.optional(name),
  agent_id: z.optional(z.nullable(name)),
  priority: z.optional(z.enum(priorities)),
  labels: z.optional(z.array(name).max(32)),
  /** Replaces all tasks that it depends on; refused with dependency_cycle when one of them waits for this task. */
  depends_on: z.optional(z.array(taskId).max(64)),
  context: z.optional(jsonObject),
  available_at: z.optional(time),
  max_attempts: z.optional(z.int().min(1).max(100)),
  budget_tokens: z.optional(z.nullable(z.int().min(0).max(1e12))),
  /** true blocks the task (operator); false releases it. */
  blocked: z.optional(z.boolean()),
})
export type TaskPatch = z.infer<typeof taskPatch>

export const task = z.object({
  task_id: taskId,
  title: z.string(),
  description: z.string(),
  role: z.string(),
  agent_id: z.nullable(z.string()),
  /** The seed's field: the agent that has or may have the task, else the role. */
  assigned_to: z.string(),
  priority: z.enum(priorities),
  status: z.enum(taskStatuses),
  blocked_reason: z.nullable(z.enum(blockedReasons)),
  labels: z.array(z.string()),
  depends_on: z.array(z.string()),
  context: z.record(z.string(), z.unknown()),
  created_at: z.string(),
  updated_at: z.string(),
  created_by: z.string(),
  /** Grows with each change; the value for If-Match. */
  version: z.int(),
  attempt: z.int(),
  max_attempts: z.int(),
  available_at: z.string(),
  lease_until: z.nullable(z.string()),
  run_id: z.nullable(z.string()),
  parent_task_id: z.nullable(z.string()),
  budget_tokens: z.nullable(z.int()),
  tokens_used: z.int(),
  check: z.optional(z.nullable(z.string())),
  cancel_requested: z.boolean(),
  result: z.nullable(z.record(z.string(), z.unknown())),
  error: z.nullable(z.string()),
  ended_at: z.nullable(z.string()),
})
export type Task = z.infer<typeof task>

/**
 * Describes `?role=&status=&label=&agent_id=&q=&limit=&after=`; `order` is newest first unless "queue". `q` searches title and description of
 * 10,000 tasks a page: a page may have fewer tasks than requested, or none, and still a `next`.
 */
export const taskQuery = z.object({
  role: z.optional(name),
  agent_id: z.optional(name),
  status: z.optional(z.enum(taskStatuses)),
  blocked_reason: z.optional(z.enum(blockedReasons)),
  open: z.optional(z.boolean()),
  label: z.optional(name),
  parent_task_id: z.optional(taskId),
  q: z.optional(text(200)),
  /** Leaves description, context and result empty: a list shows none of them, and they may be long. */
  brief: z.optional(z.boolean()),
  limit: z.int().min(1).max(200).default(50),
  after: z.optional(taskId),
  order: z.enum(['newest', 'queue']).default('newest'),
})
export type TaskQuery = z.infer<typeof taskQuery>

export const claimRequest = z.strictObject({
  role: name,
  agent_id: name,
  /** How long to wait for a task, in ms. */
  wait_ms: z.int().min(0).max(25_000).default(0),
  /** At most CONTROLPLANE_LEASE_SECONDS. */
  lease_s: z.optional(z.int().min(1).max(86_400)),
  labels: z.array(name).max(32).default([]),
})
export type ClaimRequest = z.infer<typeof claimRequest>

export const claim = z.object({
  task,
  run_id: runId,
  attempt: z.int(),
  lease_until: z.string(),
  /** The runner sends it as bearer; writes with it count only while the lease is in force. Shown once, stored as SHA-256. */
  run_token: z.string(),
})
export type Claim = z.infer<typeof claim>

export const beat = z.object({
  lease_until: z.string(),
  cancel_requested: z.boolean(),
  /** The tokens that this run may still spend, the least of all its limits; null: no limit. */
  budget_remaining: z.nullable(z.int()),
})
export type Beat = z.infer<typeof beat>

/**
 * `retry`: returns to the queue with a back-off; `now`: runs again at once, and the attempt does not count; `failed`: ends the task;
 * `cancelled`: confirms a cancel.
 */
export const releaseRequest = z.strictObject({
  outcome: z.enum(['retry', 'now', 'failed', 'cancelled']).default('retry'),
  error: z.optional(text(8_192)),
  tokens_used: z.optional(z.int().min(0).max(1e9)),
})
export type ReleaseRequest = z.infer<typeof releaseRequest>

export const effectKey = z.string().regex(/^[\x21-\x7e]{1,200}$/, 'an effect key is 1 to 200 visible characters')
/** The result of an effect, for a run that asks for it again; at most 64 KiB as text. */
export const effectResult = z.unknown().refine((value) => (JSON.stringify(value)?.length ?? 0) <= 65_536, 'more than 64 KiB of JSON')
export const effectRequest = z.strictObject({
  key: effectKey,
  idempotent: z.boolean().default(false),
  description: z._default(text(2_000), ''),
})
export type EffectRequest = z.infer<typeof effectRequest>
export const effectReply = z.object({ state: z.enum(['new', 'done', 'in_doubt']), result: z.optional(z.unknown()) })
export type EffectReply = z.infer<typeof effectReply>
export const effect = z.object({
  key: z.string(),
  idempotent: z.boolean(),
  description: z.string(),
  state: z.enum(['intent', 'done', 'in_doubt', 'given_up']),
  result: z.optional(z.unknown()),
  run_id: z.string(),
  begun_at: z.string(),
  done_at: z.nullable(z.string()),
})
export type Effect = z.infer<typeof effect>
/** done: it happened; redo: it did not, so run it again; give_up: fail the task. Without a key it covers every effect in doubt. */
export const resolveRequest = z.strictObject({
  outcome: z.enum(['done', 'redo', 'give_up']),
  key: z.optional(effectKey),
  result: z.optional(effectResult),
  note: z._default(text(2_000), ''),
})
export type ResolveRequest = z.infer<typeof resolveRequest>

/** Describes a heartbeat schedule, by which the control plane creates tasks. */
export const scheduleDraft = z.strictObject({
  name,
  /** Has five fields or is @daily; `every` is an interval such as 30m or 2h. Exactly one of both is set. */
  cron: z.optional(z.string().max(100)),
  every: z.optional(z.string().max(20)),
  timezone: z.string().max(64).default('UTC'),
  /** Decides about times that passed while no daemon ran: one task for all, none, or one each (100 at most). */
  missed: z.enum(['run-once', 'skip', 'run-all']).default('run-once'),
  /** Decides whether a new task starts while the one before has not ended. */
  overlap: z.enum(['skip', 'allow']).default('skip'),
  task: taskDraft,
  enabled: z.boolean().default(true),
})
export type ScheduleDraft = z.infer<typeof scheduleDraft>
export const schedule = z.object({
  ...scheduleDraft.shape,
  schedule_id: z.string(),
  next_at: z.nullable(z.string()),
  last_fired_at: z.nullable(z.string()),
  last_task_id: z.nullable(z.string()),
  created_at: z.string(),
})
export type ControlSchedule = z.infer<typeof schedule>
