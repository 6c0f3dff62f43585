/** Reads approvals as they travel. */

import { type Approval, approval } from '../../contract/approval-shapes.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Command, Row } from '../../contract/store-port.ts'
import { idOf, idOrNull, numberOf, type PlaneContext } from '../context.ts'
import { first, int, intOrNull, object, text, textOrNull, time, timeOrNull } from '../row.ts'

export function approvalOf(row: Row): Approval {
  return {
    approval_id: idOf('APPR', int(row, 'id')),
    task_id: idOrNull('TASK', intOrNull(row, 'task_id')),
    run_id: idOrNull('RUN', intOrNull(row, 'run_id')),
    agent_id: text(row, 'agent_id'),
    role: textOrNull(row, 'role'),
    operation: text(row, 'operation'),
    reasoning: text(row, 'reasoning'),
    estimated_tokens: int(row, 'estimated_tokens'),
    details: object(row, 'details'),
    digest: text(row, 'digest'),
    state: approval.shape.state.parse(row.state),
    note: textOrNull(row, 'note'),
    decided_by: textOrNull(row, 'decided_by'),
    decided_at: timeOrNull(row, 'decided_at'),
    used_at: timeOrNull(row, 'used_at'),
    created_at: time(row, 'created_at'),
    expires_at: time(row, 'expires_at'),
  }
}

/** @throws PlaneRefusal not_found */
export function* readApproval(id: string): Command<Row> {
  const row = yield* first('SELECT * FROM approvals WHERE id = ?', [numberOf(id)])
  if (!row) throw new PlaneRefusal('not_found', `there is no approval ${id}`)
  return row
}

/** Locks its task too, and before it: everything else locks the task first. @throws PlaneRefusal not_found */
export function* lockApproval({ dialect }: PlaneContext, id: string): Command<Row> {
  const { task_id: taskId } = yield* readApproval(id)
  if (taskId !== null && taskId !== undefined) yield [`SELECT id FROM tasks WHERE id = ?${dialect.forUpdate}`, [taskId]]
  const row = yield* first(`SELECT * FROM approvals WHERE id = ?${dialect.forUpdate}`, [numberOf(id)])
  if (!row) throw new PlaneRefusal('not_found', `there is no approval ${id}`)
  return row
}
