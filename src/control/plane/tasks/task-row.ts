/** Turns rows of the table `tasks` into tasks as they travel, and computes their place in the queue. */

import type { Row } from '../../contract/store-port.ts'
import { type Task, type TaskDraft, task as taskShape } from '../../contract/task-shapes.ts'
import { idOf, idOrNull } from '../context.ts'
import { flag, int, intOrNull, object, objectOrNull, strings, text, textOrNull, time, timeOrNull } from '../row.ts'

type Priority = TaskDraft['priority']

const { status: statusShape, blocked_reason: reasonShape } = taskShape.shape

/** Each hour of waiting is worth as much as an hour of bonus: a task of low priority comes up in the end. */
const bonusMs: Readonly<Record<Priority, number>> = { low: -3_600_000, medium: 0, high: 3_600_000, urgent: 10_800_000 }
const ranks: readonly Priority[] = ['low', 'medium', 'high', 'urgent']

export function rankOf(priority: Priority): number {
  return ranks.indexOf(priority)
}

export function priorityOf(row: Row): Priority {
  return ranks[int(row, 'priority')] ?? 'medium'
}

/** Stands in `queue_at` of a pending task that may not run yet: the claim's range of the index ends before it. */
export const DELAYED = 1_000_000_000_000_000

export type QueuePlace = { readonly createdAt: number; readonly priority: Priority; readonly availableAt: number; readonly now: number }

export function queueAt({ createdAt, priority, availableAt, now }: QueuePlace): number {
  return availableAt > now ? DELAYED : createdAt - bonusMs[priority]
}

/** The expression of `queueAt` for a task whose time has come. */
export const readyQueueAt = `created_at - CASE priority WHEN 0 THEN ${bonusMs.low} WHEN 2 THEN ${bonusMs.high} WHEN 3 THEN ${bonusMs.urgent} ELSE 0 END`

/** `needs`: the numbers of the tasks that it depends on. `agentId`: who has it now. */
export function taskOf(row: Row, needs: readonly number[] = [], agentId: string | null = null): Task {
  const isRunning = row.status === 'running'
  return {
    task_id: idOf('TASK', int(row, 'id')),
    title: text(row, 'title'),
    description: text(row, 'description'),
    role: text(row, 'role'),
    agent_id: textOrNull(row, 'agent_id'),
    assigned_to: agentId ?? textOrNull(row, 'agent_id') ?? text(row, 'role'),
    priority: priorityOf(row),
    status: statusShape.parse(row.status),
    blocked_reason: reasonShape.parse(row.blocked_reason),
    labels: strings(row, 'labels'),
    depends_on: needs.map((need) => idOf('TASK', need)),
    context: object(row, 'context'),
    created_at: time(row, 'created_at'),
    updated_at: time(row, 'updated_at'),
    created_by: text(row, 'created_by'),
    version: int(row, 'version'),
    attempt: int(row, 'attempt'),
    max_attempts: int(row, 'max_attempts'),
    available_at: time(row, 'available_at'),
    lease_until: isRunning ? timeOrNull(row, 'available_at') : null,
    run_id: idOrNull('RUN', intOrNull(row, 'run_id')),
    parent_task_id: idOrNull('TASK', intOrNull(row, 'parent_id')),
    budget_tokens: intOrNull(row, 'budget_tokens'),
    tokens_used: int(row, 'tokens_used'),
    cancel_requested: flag(row, 'cancel_requested'),
    result: objectOrNull(row, 'result'),
    error: textOrNull(row, 'error'),
    ended_at: timeOrNull(row, 'ended_at'),
  }
}
