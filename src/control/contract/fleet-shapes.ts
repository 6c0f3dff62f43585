/** Defines agents, their keys, operator tokens, budgets and the ledger as they travel as JSON. */

import { z } from 'zod'
import { name } from './task-shapes.ts'

/** Names the owner of a credential; `control_plane` stays the same when the address of the control plane or its engine changes. */
export const identity = z.object({
  kind: z.enum(['operator', 'agent', 'run']),
  id: z.string(),
  role: z.nullable(z.string()),
  control_plane: z.string(),
})
export type Identity = z.infer<typeof identity>

export const agentDraft = z.strictObject({
  id: name,
  role: name,
  heartbeat_enabled: z.boolean().default(true),
  /** May name the agent that an escalation goes to, and hold other notes of the operator. */
  description: z.string().max(2_000).default(''),
  /** The tokens that this agent may spend a day; null: only the limits of its role and of all. */
  daily_tokens: z.nullable(z.int().min(0).max(1e12)).default(null),
})
export type AgentDraft = z.infer<typeof agentDraft>
export const agentPatch = z.strictObject({
  role: z.optional(name),
  heartbeat_enabled: z.optional(z.boolean()),
  description: z.optional(z.string().max(2_000)),
  daily_tokens: z.optional(z.nullable(z.int().min(0).max(1e12))),
})
export type AgentPatch = z.infer<typeof agentPatch>

export const agent = z.object({
  id: z.string(),
  role: z.string(),
  heartbeat_enabled: z.boolean(),
  description: z.string(),
  daily_tokens: z.nullable(z.int()),
  paused: z.boolean(),
  paused_reason: z.nullable(z.string()),
  /** Counts how often an operator woke the agent: a waiting worker then returns at once. */
  wakes: z.int(),
  last_seen_at: z.nullable(z.string()),
  /** Its worker's report about itself: host, pid, runner, versions. */
  worker: z.nullable(z.record(z.string(), z.unknown())),
  running: z.array(z.object({ task_id: z.string(), run_id: z.string(), title: z.string(), lease_until: z.string() })),
  spent_today: z.int(),
  created_at: z.string(),
})
export type Agent = z.infer<typeof agent>

export const agentKey = z.object({
  key_id: z.string(),
  agent_id: z.string(),
  created_at: z.string(),
  last_used_at: z.nullable(z.string()),
  revoked_at: z.nullable(z.string()),
})
export type AgentKey = z.infer<typeof agentKey>
/** `key` is shown only in this answer. */
export const newAgentKey = z.object({ ...agentKey.shape, key: z.string() })
export type NewAgentKey = z.infer<typeof newAgentKey>

export const operatorToken = z.object({ id: z.string(), name: z.string(), created_at: z.string(), revoked_at: z.nullable(z.string()) })
export type OperatorToken = z.infer<typeof operatorToken>
export const newOperatorToken = z.object({ ...operatorToken.shape, token: z.string() })
export type NewOperatorToken = z.infer<typeof newOperatorToken>

/** A limit: null means none. `allocation` limits roles; what a role may spend is also part of the whole. */
export const budgetSettings = z.strictObject({
  daily_tokens: z.nullable(z.int().min(0).max(1e12)),
  allocation: z.record(name, z.int().min(0).max(1e12)),
  /** IANA zone in which a day begins. */
  timezone: z.string().max(64),
})
export type BudgetSettings = z.infer<typeof budgetSettings>
export const budgetPatch = z.strictObject({
  daily_tokens: z.optional(budgetSettings.shape.daily_tokens),
  allocation: z.optional(budgetSettings.shape.allocation),
  timezone: z.optional(budgetSettings.shape.timezone),
})
export type BudgetPatch = z.infer<typeof budgetPatch>

const scope = z.object({ limit: z.nullable(z.int()), spent: z.int(), reserved: z.int(), remaining: z.nullable(z.int()) })
export const budget = z.object({
  ...budgetSettings.shape,
  /** YYYY-MM-DD in `timezone`. */
  day: z.string(),
  next_day_at: z.string(),
  spent_today: z.int(),
  reserved: z.int(),
  remaining: z.nullable(z.int()),
  hard_limit_exceeded: z.boolean(),
  roles: z.record(z.string(), scope),
  agents: z.record(z.string(), scope),
  /** Extrapolates today's spending to the end of the day. */
  forecast_today: z.int(),
  /** The last 30 days, oldest first. */
  days: z.array(z.object({ day: z.string(), spent: z.int(), by_role: z.record(z.string(), z.int()) })),
  blocked_tasks: z.int(),
})
export type Budget = z.infer<typeof budget>

/**
 * Counts tokens once each: `settled`: a reservation with its true cost; `forfeited`: a reservation whose run was lost; `reported`: what an
 * agent reports beyond both.
 */
export const ledgerEntry = z.object({
  id: z.int(),
  at: z.string(),
  /** YYYY-MM-DD in the zone that the budget had at that time. */
  day: z.string(),
  role: z.nullable(z.string()),
  agent_id: z.string(),
  task_id: z.nullable(z.string()),
  run_id: z.nullable(z.string()),
  tokens: z.int(),
  reason: z.enum(['settled', 'forfeited', 'reported']),
  model: z.string(),
})
export type LedgerEntry = z.infer<typeof ledgerEntry>
/** Asks for entries behind `after`, oldest first. */
export type LedgerQuery = { readonly after: number; readonly limit: number }

export const reserveRequest = z.strictObject({ tokens: z.int().min(1).max(1e9), purpose: z.string().max(200).default('') })
export type ReserveRequest = z.infer<typeof reserveRequest>
export const reservation = z.object({ reservation_id: z.string(), tokens: z.int(), budget_remaining: z.nullable(z.int()) })
export type Reservation = z.infer<typeof reservation>
/** `tokens` is the true cost, also when it exceeds the reservation. */
export const settleRequest = z.strictObject({
  reservation_id: z.string().max(64),
  tokens: z.int().min(0).max(1e9),
  model: z.string().max(200).default(''),
})
export type SettleRequest = z.infer<typeof settleRequest>
export const settled = z.object({ tokens: z.int(), budget_remaining: z.nullable(z.int()) })
export type Settled = z.infer<typeof settled>
