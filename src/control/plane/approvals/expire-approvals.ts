/** Ends the time of questions that nobody answered, and of approvals that nobody used. */

import type { Command } from '../../contract/store-port.ts'
import { idOf, type PlaneContext } from '../context.ts'
import { int } from '../row.ts'
import { expireRow, isOver } from './answer-approval.ts'
import { lockApproval } from './approval-row.ts'

const atOnce = 100

/** Each in a transaction of its own, with the wake of its task. */
export async function expireApprovals(context: PlaneContext): Promise<void> {
  const { store } = context
  for (const id of await store.read(() => overdue(context))) await store.write(() => expireOne(context, id))
}

function* overdue(context: PlaneContext): Command<readonly string[]> {
  const rows = yield [
    `SELECT id FROM approvals WHERE state IN ('pending', 'approved') AND expires_at <= ? ORDER BY id LIMIT ${atOnce}`,
    [context.now()],
  ]
  return rows.map((row) => idOf('APPR', int(row, 'id')))
}

function* expireOne(context: PlaneContext, id: string): Command<void> {
  const row = yield* lockApproval(context, id)
  const isOpen = row.state === 'pending' || row.state === 'approved'
  if (isOpen && isOver(context, row)) yield* expireRow(context, row)
}
