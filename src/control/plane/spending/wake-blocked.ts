/** Returns tasks that wait for budget to the queue, where their budgets have something left. */

import type { Command } from '../../contract/store-port.ts'
import { remainingFor } from '../budget/reservations.ts'
import type { PlaneContext } from '../context.ts'
import { int, text, textOrNull } from '../row.ts'
import { wakeTask } from '../tasks/end-task.ts'

/** @returns how many tasks were woken */
export function* wakeBlocked(context: PlaneContext, actor: string): Command<number> {
  const rows = yield [
    `SELECT id, role, agent_id FROM tasks WHERE status = 'budget_blocked'
      AND (budget_tokens IS NULL OR tokens_used + tokens_reserved < budget_tokens) ORDER BY id`,
  ]
  const left = new Map<string, number | null>()
  let woken = 0
  for (const row of rows) {
    const [role, agentId] = [text(row, 'role'), textOrNull(row, 'agent_id')]
    const key = JSON.stringify([role, agentId])
    if (!left.has(key)) left.set(key, yield* remainingFor(context, { role, agentId, taskId: null }))
    if (left.get(key) !== 0 && (yield* wakeTask(context, int(row, 'id'), actor))) woken += 1
  }
  return woken
}
