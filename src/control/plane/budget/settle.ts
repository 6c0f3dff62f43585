/** Replaces a reservation by what was really spent. */

import type { Caller } from '../../contract/caller.ts'
import type { Settled, SettleRequest } from '../../contract/fleet-shapes.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Command, Row } from '../../contract/store-port.ts'
import { numberOf, type PlaneContext } from '../context.ts'
import { first, int, text } from '../row.ts'
import { countSpent } from './ledger.ts'
import { addSettled, remainingFor, reservationOf } from './reservations.ts'

export type Settling = {
  readonly caller: Extract<Caller, { readonly kind: 'run' }>
  readonly request: SettleRequest
}

/**
 * The true cost is counted also when it is more than was reserved, and when it comes after the run has ended: tokens that were spent are never
 * left out. After a lost lease the whole reservation has been counted already; then only what exceeds it is added.
 * @throws PlaneRefusal not_found for a reservation of another run; conflict when it was settled with another number
 */
export function* settleTokens(context: PlaneContext, { caller, request }: Settling): Command<Settled> {
  const [taskId, runId] = [numberOf(caller.taskId), numberOf(caller.runId)]
  const row = yield* ownReservation({ id: request.reservation_id, runId })
  if (text(row, 'state') === 'settled') assertSameNumber(row, request)
  else yield* settleRow(context, { row, request, runId })
  const role = text(row, 'role')
  return { tokens: request.tokens, budget_remaining: yield* remainingFor(context, { role, agentId: caller.id, taskId }) }
}

function* settleRow(
  context: PlaneContext,
  { row, request: { tokens, model }, runId }: { readonly row: Row; readonly request: SettleRequest; readonly runId: number },
): Command<void> {
  const { payer, day, taskId, tokens: reserved } = reservationOf(row)
  const state = text(row, 'state')
  const held = state === 'open' ? reserved : 0
  const counted = state === 'forfeited' ? reserved : 0
  yield [
    "UPDATE reservations SET state = 'settled', spent = ?, model = ?, settled_at = ? WHERE id = ?",
    [tokens, model, context.now(), int(row, 'id')],
  ]
  const added = yield* addSettled({ runId, taskId, tokens: Math.max(0, tokens - counted), held })
  yield* countSpent(context, { payer, day, tokens: added, freed: held, reason: 'settled', taskId, runId, model })
}

function* ownReservation({ id, runId }: { readonly id: string; readonly runId: number }): Command<Row> {
  const number = /^RSV-\d{1,15}$/.test(id) ? numberOf(id) : 0
  const row = yield* first('SELECT * FROM reservations WHERE id = ? AND run_id = ?', [number, runId])
  if (row) return row
  throw new PlaneRefusal('not_found', `this run has no reservation "${id}"`)
}

/** A repeated request is answered as the first one. */
function assertSameNumber(row: Row, { tokens }: SettleRequest): void {
  if (int(row, 'spent') === tokens) return
  throw new PlaneRefusal('conflict', `this reservation was settled with ${int(row, 'spent')} tokens; it cannot become ${tokens}`)
}
