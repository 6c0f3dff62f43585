/** Counts spent tokens: a row in the ledger, and the sums of the day they belong to. */

import type { Command } from '../../contract/store-port.ts'
import { nextId, type PlaneContext } from '../context.ts'
import { changeDay, type Payer } from './scopes.ts'

export type Spent = {
  readonly payer: Payer
  readonly day: string
  readonly tokens: number
  /** settled: a reservation with its true cost; forfeited: one whose run was lost; reported: what an agent said beyond both. */
  readonly reason: 'settled' | 'forfeited' | 'reported'
  readonly taskId?: number | null
  readonly runId?: number | null
  readonly model?: string
  /** How much a reservation had held until now. */
  readonly freed?: number
}

export function* countSpent(
  context: Pick<PlaneContext, 'now'>,
  { payer, day, tokens, reason, taskId = null, runId = null, model = '', freed = 0 }: Spent,
): Command<void> {
  if (tokens !== 0 || freed !== 0) yield* changeDay({ day, payer, spent: tokens, reserved: -freed })
  if (tokens === 0) return
  yield [
    'INSERT INTO ledger (id, at, day, role, agent_id, task_id, run_id, tokens, reason, model) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
    [yield* nextId('ledger'), context.now(), day, payer.role, payer.agentId ?? '', taskId, runId, tokens, reason, model],
  ]
}
