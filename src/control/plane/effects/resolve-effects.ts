/** Lists the effects of a task, and lets an operator say what became of those in doubt. */

import { type Caller, signatureOf } from '../../contract/caller.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import { onlyOperator } from '../../contract/rights.ts'
import type { Command, Row } from '../../contract/store-port.ts'
import { type Effect, effect, type ResolveRequest } from '../../contract/task-shapes.ts'
import { idOf, numberOf, type PlaneContext } from '../context.ts'
import { amount, flag, int, text, time, timeOrNull } from '../row.ts'
import { endTask, requeueTask } from '../tasks/end-task.ts'
import { lockTask, recordTask } from '../tasks/task-change.ts'
import { resultOf } from './run-effects.ts'

export function* listEffects(number: number): Command<readonly Effect[]> {
  const rows = yield ['SELECT * FROM effects WHERE task_id = ? ORDER BY begun_at, key', [number]]
  return rows.map(effectOf)
}

function effectOf(row: Row): Effect {
  return {
    key: text(row, 'key'),
    idempotent: flag(row, 'idempotent'),
    description: text(row, 'description'),
    state: effect.shape.state.parse(row.state),
    ...(row.result === null ? {} : { result: resultOf(row) }),
    run_id: idOf('RUN', int(row, 'run_id')),
    begun_at: time(row, 'begun_at'),
    done_at: timeOrNull(row, 'done_at'),
  }
}

export type Resolving = { readonly caller: Caller; readonly id: string; readonly request: ResolveRequest }

/**
 * done: the result is kept and the task goes on. redo: forgets the intent, so the next run does it. give_up: fails the task. It goes on once
 * nothing of it is in doubt. @throws PlaneRefusal conflict when nothing is in doubt, not_found for the key
 */
export function* resolveEffects(context: PlaneContext, { caller, id, request }: Resolving): Command<Row> {
  onlyOperator(caller, 'resolve effects')
  const task = yield* lockTask(context, numberOf(id))
  if (task.status !== 'blocked' || task.blocked_reason !== 'in_doubt')
    throw new PlaneRefusal('conflict', `${id} is ${text(task, 'status')} and has no effect in doubt`)
  const keys = yield* keysInDoubt(int(task, 'id'), request.key)
  if (keys.length === 0) throw new PlaneRefusal('not_found', `${id} has no effect "${request.key ?? ''}" in doubt`)
  for (const key of keys) yield resolution(context, int(task, 'id'), key, request)
  const actor = signatureOf(caller)
  yield* recordTask(context, task, { type: 'task.resolved', actor, data: { outcome: request.outcome, keys, note: request.note } })
  if (request.outcome === 'give_up')
    return yield* endTask(context, task, {
      status: 'failed',
      actor,
      run: { state: 'failed' },
      error: request.note || `gave up ${keys.join(', ')}`,
    })
  if (yield* isStillInDoubt(int(task, 'id'))) return task
  const again = { run: { state: 'waiting' as const }, availableAt: context.now(), failures: int(task, 'failures') }
  return yield* requeueTask(context, task, { type: 'task.woken', actor, ...again })
}

function* keysInDoubt(number: number, key: string | undefined): Command<readonly string[]> {
  const rows = yield [
    `SELECT key FROM effects WHERE task_id = ? AND state = 'in_doubt'${key === undefined ? '' : ' AND key = ?'} ORDER BY key`,
    key === undefined ? [number] : [number, key],
  ]
  return rows.map((row) => text(row, 'key'))
}

function resolution(context: PlaneContext, number: number, key: string, { outcome, result }: ResolveRequest) {
  if (outcome === 'redo') return ['DELETE FROM effects WHERE task_id = ? AND key = ?', [number, key]] as const
  const state = outcome === 'done' ? 'done' : 'given_up'
  const text = outcome === 'done' ? JSON.stringify(result ?? null) : null
  return [
    'UPDATE effects SET state = ?, result = ?, done_at = ? WHERE task_id = ? AND key = ?',
    [state, text, context.now(), number, key],
  ] as const
}

function* isStillInDoubt(number: number): Command<boolean> {
  return (yield* amount("SELECT count(*) AS value FROM effects WHERE task_id = ? AND state = 'in_doubt'", [number])) > 0
}
