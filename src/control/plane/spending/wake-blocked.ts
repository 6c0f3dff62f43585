/** Returns tasks that wait for budget to the queue, where their budgets have something left. */

import type { Command, Row } from '../../contract/store-port.ts'
import { remainingFor } from '../budget/reservations.ts'
import type { PlaneContext } from '../context.ts'
import { int, marks, text, textOrNull } from '../row.ts'
import { noLease } from '../tasks/end-run.ts'
import { readyTopic, recordTask } from '../tasks/task-change.ts'
import { readyQueueAt } from '../tasks/task-row.ts'

/** Everybody else waits meanwhile, so thousands of tasks must not be a statement each. */
const atOnce = 500

/** @returns how many tasks were woken */
export function* wakeBlocked(context: PlaneContext, actor: string): Command<number> {
  const ids = (yield* payable(context)).map((row) => int(row, 'id'))
  for (let at = 0; at < ids.length; at += atOnce) yield* wakeSome(context, ids.slice(at, at + atOnce), actor)
  return ids.length
}

function* payable(context: PlaneContext): Command<readonly Row[]> {
  const rows = yield [
    `SELECT id, role, agent_id FROM tasks WHERE status = 'budget_blocked'
      AND (budget_tokens IS NULL OR tokens_used + tokens_reserved < budget_tokens) ORDER BY id${context.dialect.forUpdate}`,
  ]
  const left = new Map<string, number | null>()
  const payer = (row: Row) => ({ role: text(row, 'role'), agentId: textOrNull(row, 'agent_id'), taskId: null })
  const keyOf = (row: Row) => JSON.stringify(payer(row))
  for (const row of rows) if (!left.has(keyOf(row))) left.set(keyOf(row), yield* remainingFor(context, payer(row)))
  return rows.filter((row) => left.get(keyOf(row)) !== 0)
}

/** A task that waits for budget has no lease, and nobody can have asked to cancel it: that would have ended it. */
const woken = { status: 'pending', blocked_reason: null, error: null, result: null, ended_at: null, ...noLease }
const columns = Object.keys(woken)

function* wakeSome(context: PlaneContext, ids: readonly number[], actor: string): Command<void> {
  const now = context.now()
  const rows = yield [
    `UPDATE tasks SET ${columns.map((name) => `${name} = ?`).join(', ')}, available_at = ?, queue_at = ${readyQueueAt},
      version = version + 1, updated_at = ? WHERE id IN (${marks(ids)}) RETURNING id, title, status, role, agent_id, run_id`,
    [...Object.values(woken), now, now, ...ids],
  ]
  const data = { available_at: new Date(now).toISOString() }
  for (const row of rows.toSorted((a, b) => int(a, 'id') - int(b, 'id')))
    yield* recordTask(context, row, { type: 'task.woken', actor, data })
  for (const role of new Set(rows.map((row) => text(row, 'role')))) yield* context.store.announce(readyTopic(role))
}
