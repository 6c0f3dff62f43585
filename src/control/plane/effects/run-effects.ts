/** Keeps what a run does to the world: an intent before it, the result after it, so that nothing is done twice without anybody knowing. */

import { type Caller, signatureOf } from '../../contract/caller.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Command, Row } from '../../contract/store-port.ts'
import type { EffectReply, EffectRequest } from '../../contract/task-shapes.ts'
import type { PlaneContext } from '../context.ts'
import { amount, first, flag, int, text } from '../row.ts'
import { blockTask } from '../tasks/end-task.ts'
import { lockLease } from '../tasks/lease.ts'

export type EffectOf = { readonly caller: Caller; readonly id: string }

/**
 * `new`: do it now, then report it. `done`: it happened, here is its result. `in_doubt`: it was begun and nobody knows whether it happened; the
 * task waits for an operator and this run's lease has ended. One that is idempotent may be begun again and again.
 * @throws PlaneRefusal lease_lost, conflict for a key that was given up, too_many
 */
export function* beginEffect(context: PlaneContext, { caller, id }: EffectOf, request: EffectRequest): Command<EffectReply> {
  const task = yield* lockLease(context, caller, id)
  const known = yield* findEffect(context, task, request.key)
  if (!known) return yield* noteIntent(context, task, request)
  if (known.state === 'done') return { state: 'done', result: resultOf(known) }
  if (known.state === 'given_up') throw new PlaneRefusal('conflict', `effect "${request.key}" was given up by an operator`)
  if (flag(known, 'idempotent')) return yield* beginAgain(context, task, request)
  yield ["UPDATE effects SET state = 'in_doubt' WHERE task_id = ? AND key = ?", [int(task, 'id'), request.key]]
  const error = `effect "${request.key}" was begun and its result is not known; say what happened with "braidclaw control task resolve"`
  yield* blockTask(context, int(task, 'id'), 'blocked', 'in_doubt', { actor: signatureOf(caller), error })
  return { state: 'in_doubt' }
}

/** Only the run that began an effect knows its result; told twice, the first result stays. @throws PlaneRefusal lease_lost, not_found */
export function* endEffect(context: PlaneContext, { caller, id }: EffectOf, key: string, result: unknown): Command<EffectReply> {
  const task = yield* lockLease(context, caller, id)
  const known = yield* findEffect(context, task, key)
  if (!known) throw new PlaneRefusal('not_found', `${id} has no effect "${key}"; begin it before it happens`)
  if (known.state === 'done') return { state: 'done', result: resultOf(known) }
  if (int(known, 'run_id') !== int(task, 'run_id'))
    throw new PlaneRefusal('in_doubt', `effect "${key}" was begun by another run; begin it first`)
  yield [
    "UPDATE effects SET state = 'done', result = ?, done_at = ? WHERE task_id = ? AND key = ?",
    [JSON.stringify(result ?? null), context.now(), int(task, 'id'), key],
  ]
  return { state: 'done', result: result ?? null }
}

function* findEffect(context: PlaneContext, task: Row, key: string): Command<Row | undefined> {
  return yield* first(`SELECT * FROM effects WHERE task_id = ? AND key = ?${context.dialect.forUpdate}`, [int(task, 'id'), key])
}

/** They are listed all at once. */
const mostEffects = 1_000

function* noteIntent(context: PlaneContext, task: Row, { key, idempotent, description }: EffectRequest): Command<EffectReply> {
  if ((yield* amount('SELECT COUNT(*) AS value FROM effects WHERE task_id = ?', [int(task, 'id')])) >= mostEffects)
    throw new PlaneRefusal('too_many', `a task has at most ${mostEffects} effects, done ones included; give the rest to other tasks`)
  yield [
    "INSERT INTO effects (task_id, key, run_id, idempotent, description, state, begun_at) VALUES (?, ?, ?, ?, ?, 'intent', ?)",
    [int(task, 'id'), key, int(task, 'run_id'), idempotent ? 1 : 0, description, context.now()],
  ]
  return { state: 'new' }
}

function* beginAgain(context: PlaneContext, task: Row, { key }: EffectRequest): Command<EffectReply> {
  const begun = [int(task, 'run_id'), context.now(), int(task, 'id'), key]
  yield ["UPDATE effects SET state = 'intent', run_id = ?, begun_at = ? WHERE task_id = ? AND key = ?", begun]
  return { state: 'new' }
}

export function resultOf(row: Row): unknown {
  return row.result === null || row.result === undefined ? null : JSON.parse(text(row, 'result'))
}
