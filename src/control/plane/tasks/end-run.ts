/** Ends the run of a task: its row, its account, and the lease of the task. */

import type { Command, Row } from '../../contract/store-port.ts'
import { closeReservations, forfeitRun, reportTotal } from '../budget/reservations.ts'
import { idOf, type PlaneContext } from '../context.ts'
import { first, int, intOrNull, text } from '../row.ts'

export type RunState = 'completed' | 'failed' | 'released' | 'lost' | 'cancelled' | 'waiting'

export type EndOfRun = {
  readonly state: RunState
  readonly error?: string | null | undefined
  readonly skill?: string | null | undefined
  /** What the run says it spent in all; without it, what it had reserved counts as spent. */
  readonly total?: number | undefined
}

/** The columns of a task that has no lease. */
export const noLease = { lease_digest: null, lease_ms: null } as const

const ofRun = `id, task_id, agent_id, role, tokens_used,
  (SELECT COUNT(*) FROM reservations WHERE run_id = runs.id AND state = 'open') AS open_reservations`

/** Does nothing unless the task is running. The caller changes the task. @returns the agent that had it */
export function* endRun(
  context: PlaneContext,
  task: Row,
  { state, error = null, skill = null, total }: EndOfRun,
): Command<string | undefined> {
  const runId = task.status === 'running' ? intOrNull(task, 'run_id') : null
  if (runId === null) return undefined
  const ended = yield* first(
    `UPDATE runs SET state = ?, ended_at = ?, error = ?, skill = COALESCE(?, skill) WHERE id = ? AND state = 'running' RETURNING ${ofRun}`,
    [state, context.now(), error, skill, runId],
  )
  if (!ended) return undefined
  const hasReserved = int(ended, 'open_reservations') > 0
  if (total === undefined && hasReserved) yield* forfeitRun(context, runId)
  if (total !== undefined && hasReserved) yield* closeReservations(context, { runId, taskId: int(task, 'id') })
  if (total !== undefined) yield* reportTotal(context, ended, total)
  return text(ended, 'agent_id')
}

/** Questions of a task that has ended need no answer any more. */
export function* cancelQuestions(context: PlaneContext, task: Row): Command<void> {
  yield [
    "UPDATE approvals SET state = 'cancelled', decided_at = ?, note = ? WHERE task_id = ? AND state = 'pending'",
    [context.now(), `${idOf('TASK', int(task, 'id'))} ended`, int(task, 'id')],
  ]
}
