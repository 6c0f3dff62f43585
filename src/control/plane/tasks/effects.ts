/** Records what a run does to the world: an intent before it and the result after it. An operator decides about those in doubt. */

import { type Caller, onlyOperator, signatureOf } from '../../contract/caller.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Command, Row } from '../../contract/store-port.ts'
import { type Effect, type EffectReply, type EffectRequest, effect, type ResolveRequest } from '../../contract/task-shapes.ts'
import { flag, idOf, int, numberOf, type PlaneContext, queryNumber, queryOne, text, time, timeOrNull } from '../command.ts'
import { blockTask, endTask, requeueTask } from './end-task.ts'
import { lockLease, lockTask, recordTask } from './task-change.ts'

type EffectOf = { readonly caller: Caller; readonly id: string }

/**
 * Begins an effect. `new`: do it now, then report it. `done`: it happened, here is its result. `in_doubt`: an earlier run began it and nobody
 * knows whether it happened; the task waits for an operator and this run's lease has ended. An idempotent effect may begin any number of
 * times. @throws PlaneRefusal lease_lost, conflict for a key that an operator gave up, too_many
 */
export function* beginEffect(context: PlaneContext, { caller, id }: EffectOf, request: EffectRequest): Command<EffectReply> {
  const task = yield* lockLease(context, caller, id)
  const effectRow = yield* findEffect(context, task, request.key)
  if (!effectRow) return yield* insertIntent(context, task, request)
  if (effectRow.state === 'done') return { state: 'done', result: resultOf(effectRow) }
  if (effectRow.state === 'given_up') throw new PlaneRefusal('conflict', `an operator gave up effect "${request.key}"`)
  if (flag(effectRow, 'idempotent')) return yield* beginAgain(context, task, request)
  yield ["UPDATE effects SET state = 'in_doubt' WHERE task_id = ? AND key = ?", [int(task, 'id'), request.key]]
  const error = `effect "${request.key}" has begun and its result is not known; report what happened with "braidclaw control task resolve"`
  yield* blockTask(context, int(task, 'id'), 'blocked', 'in_doubt', { actor: signatureOf(caller), error })
  return { state: 'in_doubt' }
}

/** Stores the result, which only the run that began the effect knows; a second report gets the first result. @throws PlaneRefusal lease_lost, not_found */
export function* endEffect(context: PlaneContext, { caller, id }: EffectOf, key: string, result: unknown): Command<EffectReply> {
  const task = yield* lockLease(context, caller, id)
  const effectRow = yield* findEffect(context, task, key)
  if (!effectRow) throw new PlaneRefusal('not_found', `${id} has no effect "${key}"; begin it before it happens`)
  if (effectRow.state === 'done') return { state: 'done', result: resultOf(effectRow) }
  if (int(effectRow, 'run_id') !== int(task, 'run_id'))
    throw new PlaneRefusal('in_doubt', `effect "${key}" was begun by another run; begin it first`)
  yield [
    "UPDATE effects SET state = 'done', result = ?, done_at = ? WHERE task_id = ? AND key = ?",
    [JSON.stringify(result ?? null), context.now(), int(task, 'id'), key],
  ]
  return { state: 'done', result: result ?? null }
}

function* findEffect(context: PlaneContext, task: Row, key: string): Command<Row | undefined> {
  return yield* queryOne(`SELECT * FROM effects WHERE task_id = ? AND key = ?${context.dialect.forUpdate}`, [int(task, 'id'), key])
}

/** One list shows all of them. */
const mostEffects = 1_000

function* insertIntent(context: PlaneContext, task: Row, { key, idempotent, description }: EffectRequest): Command<EffectReply> {
  if ((yield* queryNumber('SELECT COUNT(*) AS value FROM effects WHERE task_id = ?', [int(task, 'id')])) >= mostEffects)
    throw new PlaneRefusal('too_many', `a task has at most ${mostEffects} effects, done ones included; give the rest to other tasks`)
  yield [
    "INSERT INTO effects (task_id, key, run_id, idempotent, description, state, begun_at) VALUES (?, ?, ?, ?, ?, 'intent', ?)",
    [int(task, 'id'), key, int(task, 'run_id'), idempotent ? 1 : 0, description, context.now()],
  ]
  return { state: 'new' }
}

function* beginAgain(context: PlaneContext, task: Row, { key }: EffectRequest): Command<EffectReply> {
  const params = [int(task, 'run_id'), context.now(), int(task, 'id'), key]
  yield ["UPDATE effects SET state = 'intent', run_id = ?, begun_at = ? WHERE task_id = ? AND key = ?", params]
  return { state: 'new' }
}

function resultOf(row: Row): unknown {
  return row.result === null || row.result === undefined ? null : JSON.parse(text(row, 'result'))
}

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

type ResolveCall = { readonly caller: Caller; readonly id: string; readonly request: ResolveRequest }

/**
 * Applies an operator's decision. done: stores the result. redo: deletes the intent, so the next run does it. give_up: fails the task.
 * Otherwise the task continues once none of its effects is in doubt. @throws PlaneRefusal conflict when none is in doubt, not_found for the
 * key
 */
export function* resolveEffects(context: PlaneContext, { caller, id, request }: ResolveCall): Command<Row> {
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
  if ((yield* keysInDoubt(int(task, 'id'))).length > 0) return task
  const again = { run: { state: 'waiting' as const }, availableAt: context.now(), failures: int(task, 'failures') }
  return yield* requeueTask(context, task, { type: 'task.woken', actor, ...again })
}

function* keysInDoubt(number: number, key?: string): Command<readonly string[]> {
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
