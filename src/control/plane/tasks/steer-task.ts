/** Lets an operator cancel tasks and try ended ones again. */

import { type Caller, signatureOf } from '../../contract/caller.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import { onlyOperator } from '../../contract/rights.ts'
import type { Command, Row } from '../../contract/store-port.ts'
import { numberOf, type PlaneContext } from '../context.ts'
import { int, text } from '../row.ts'
import { clearDependentWarnings } from './dependencies.ts'
import { endTask, requeueTask } from './end-task.ts'
import { isLeased } from './lease.ts'
import { changeTask, hasEnded, lockTask, recordTask } from './task-change.ts'

export type Steering = { readonly caller: Caller; readonly id: string; readonly note: string }

/**
 * A task that runs is told with its next beat, and ends when it is released or its lease expires. A dead one is put away: nobody wants it
 * any more. @throws PlaneRefusal conflict
 */
export function* cancelTask(context: PlaneContext, { caller, id, note }: Steering): Command<Row> {
  onlyOperator(caller, 'cancel tasks')
  const task = yield* lockTask(context, numberOf(id))
  if (hasEnded(task) && task.status !== 'dead') throw new PlaneRefusal('conflict', `${id} is ${text(task, 'status')} already`)
  const actor = signatureOf(caller)
  if (task.status === 'dead') return yield* putAway(context, task, actor)
  if (!isLeased(context, task))
    return yield* endTask(context, task, { status: 'cancelled', actor, run: { state: 'lost' }, error: note || null })
  const asked = yield* changeTask(context, int(task, 'id'), { cancel_requested: 1, error: note || null })
  yield* recordTask(context, asked, { type: 'task.cancel_requested', actor, data: { note } })
  return asked
}

/** Its error and the end of its runs stay as they are, and whoever depends on it knows since it died. */
function* putAway(context: PlaneContext, task: Row, actor: string): Command<Row> {
  const cancelled = yield* changeTask(context, int(task, 'id'), { status: 'cancelled' })
  yield* recordTask(context, cancelled, { type: 'task.cancelled', actor })
  return cancelled
}

/** Ended tasks start anew with all their attempts; one behind its back-off runs at once. @throws PlaneRefusal conflict */
export function* retryTask(context: PlaneContext, { caller, id, note }: Steering): Command<Row> {
  onlyOperator(caller, 'retry tasks')
  const task = yield* lockTask(context, numberOf(id))
  if (!canRetry(task)) throw new PlaneRefusal('conflict', `${id} is ${text(task, 'status')}: there is nothing to retry`)
  if (hasEnded(task)) yield* clearDependentWarnings(context, task)
  const again = { actor: signatureOf(caller), run: { state: 'waiting' as const }, availableAt: context.now(), failures: 0 }
  const pending = yield* requeueTask(context, task, { type: 'task.retried', ...again, error: note || null })
  if (int(pending, 'open_dependencies') === 0) return pending
  return yield* changeTask(context, int(task, 'id'), { status: 'blocked', blocked_reason: 'dependency' })
}

function canRetry(task: Row): boolean {
  return ['failed', 'dead', 'cancelled', 'pending', 'budget_blocked'].includes(text(task, 'status'))
}
