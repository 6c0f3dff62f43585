/** Writes answers in the form of the seed: its keys in its order, and times without milliseconds. */

import type { SeedApprovals, SeedState, SeedTask } from '../../contract/activity-shapes.ts'
import type { Row } from '../../contract/store-port.ts'
import type { Used } from '../budget/scopes.ts'
import { idOf, idOrNull } from '../context.ts'
import { flag, int, intOrNull, object, text, textOrNull } from '../row.ts'
import { priorityOf } from '../tasks/task-row.ts'

/** 2026-04-07T10:30:00Z */
export function seedTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`
}

/** A paused agent is told that its heartbeat is off: the seed asks "am I active?" with this field. */
export function seedAgent(row: Row): SeedState['agents'][number] {
  return { id: text(row, 'id'), role: text(row, 'role'), heartbeat_enabled: flag(row, 'heartbeat_enabled') && !flag(row, 'paused') }
}

/** The seed knows no budget without a limit: it is the highest limit that can be set. */
const noLimit = 1_000_000_000_000

export function seedBudget(
  { daily_tokens, allocation }: { readonly daily_tokens: number | null; readonly allocation: Record<string, number> },
  { spent, reserved }: Used,
): SeedState['budget'] {
  const limit = daily_tokens ?? noLimit
  return {
    daily_tokens: limit,
    spent_today: spent,
    remaining: Math.max(0, limit - spent - reserved),
    hard_limit_exceeded: spent >= limit,
    allocation,
  }
}

export function seedTask(row: Row): SeedTask {
  return {
    task_id: idOf('TASK', int(row, 'id')),
    title: text(row, 'title'),
    description: text(row, 'description'),
    assigned_to: textOrNull(row, 'agent_id') ?? text(row, 'role'),
    priority: priorityOf(row),
    status: text(row, 'status'),
    created_at: seedTime(int(row, 'created_at')),
    context: object(row, 'context'),
  }
}

export function pendingApproval(row: Row): SeedApprovals['pending'][number] {
  return {
    approval_id: idOf('APPR', int(row, 'id')),
    task_id: idOrNull('TASK', intOrNull(row, 'task_id')),
    operation: text(row, 'operation'),
    estimated_tokens: int(row, 'estimated_tokens'),
    operator_approved: false,
  }
}

export function approvedApproval(row: Row): SeedApprovals['approved'][number] {
  return {
    approval_id: idOf('APPR', int(row, 'id')),
    operation: text(row, 'operation'),
    operator_approved: true,
    approved_at: seedTime(int(row, 'decided_at')),
  }
}
