/** Extends leases, gives them back, and takes back those that expired. */

import { type Caller, signatureOf } from '../../contract/caller.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Command, Row } from '../../contract/store-port.ts'
import type { Beat, ReleaseRequest } from '../../contract/task-shapes.ts'
import { remainingFor } from '../budget/reservations.ts'
import { first, flag, idOf, int, type PlaneContext, text } from '../command.ts'
import { type EndOfRun, endTask, requeueTask } from '../tasks/end-task.ts'
import { lockLease } from '../tasks/lease.ts'
import { moveLabels, readyQueueAt, readyTopic } from '../tasks/task-change.ts'

const baseBackOffMs = 2_000
const mostBackOffMs = 15 * 60_000

/**
 * The lease lasts from now for as long as it did at the claim; of a cancelled task it is extended once. No event: beats come too often.
 * @throws PlaneRefusal lease_lost
 */
export function* beatLease(context: PlaneContext, caller: Caller, id: string): Command<Beat> {
  const task = yield* lockLease(context, caller, id)
  const isOver = flag(task, 'cancel_requested') && (yield* wasTold(task))
  const until = isOver ? int(task, 'available_at') : context.now() + int(task, 'lease_ms')
  yield ['UPDATE tasks SET available_at = ? WHERE id = ?', [until, int(task, 'id')]]
  yield ['UPDATE runs SET last_beat_at = ? WHERE id = ?', [context.now(), int(task, 'run_id')]]
  const remaining = yield* remainingFor(context, { role: text(task, 'role'), agentId: caller.id, taskId: int(task, 'id') })
  return { lease_until: new Date(until).toISOString(), cancel_requested: flag(task, 'cancel_requested'), budget_remaining: remaining }
}

/** A run that was told of the cancel by an earlier beat has the rest of that lease to end, so that none can go on for ever. */
function* wasTold(task: Row): Command<boolean> {
  const run = yield* first('SELECT last_beat_at FROM runs WHERE id = ?', [int(task, 'run_id')])
  return run !== undefined && int(run, 'last_beat_at') > int(task, 'updated_at')
}

type Release = { readonly caller: Caller; readonly id: string; readonly request: ReleaseRequest }

/** @throws PlaneRefusal lease_lost; conflict for `cancelled` when nobody cancelled the task */
export function* releaseLease(context: PlaneContext, { caller, id, request }: Release): Command<Row> {
  const task = yield* lockLease(context, caller, id)
  const { outcome, error = null, tokens_used } = request
  const total = tokens_used === undefined ? {} : { total: tokens_used }
  const actor = signatureOf(caller)
  if (outcome === 'failed')
    return yield* endTask(context, task, { status: 'failed', actor, run: { state: 'failed', error, ...total }, error })
  if (outcome === 'cancelled' && !flag(task, 'cancel_requested'))
    throw new PlaneRefusal('conflict', `${id} was not cancelled; release it with another outcome`)
  const failures = int(task, 'failures') + (outcome === 'now' ? 0 : 1)
  return yield* tryAgain(context, task, { actor, failures, error, run: { state: 'released', error, ...total }, type: 'task.released' })
}

type Again = {
  readonly actor: string
  readonly failures: number
  readonly error: string | null
  readonly run: EndOfRun
  readonly type: string
}

/** A task that somebody cancelled is not tried again; one whose attempts are used up is dead. A failure that counts is followed by a back-off. */
function* tryAgain(context: PlaneContext, task: Row, { actor, failures, error, run, type }: Again): Command<Row> {
  if (flag(task, 'cancel_requested'))
    return yield* endTask(context, task, { status: 'cancelled', actor, run: { ...run, state: 'cancelled' }, error })
  const counts = failures > int(task, 'failures')
  if (counts && failures >= int(task, 'max_attempts')) {
    yield* countFailure(task, failures)
    return yield* endTask(context, task, { status: 'dead', actor, run, error })
  }
  const wait = counts && run.state !== 'lost' ? backOffMs(failures - 1, context.random) : 0
  return yield* requeueTask(context, task, { type, actor, run, availableAt: context.now() + wait, failures, error })
}

function* countFailure(task: Row, failures: number): Command<void> {
  yield ['UPDATE tasks SET failures = ? WHERE id = ?', [failures, int(task, 'id')]]
}

/** The lease was the wait: an expired one counts as a failure, and the task is claimable at once. */
function* expireLease(context: PlaneContext, task: Row): Command<Row> {
  const error = `the lease of ${idOf('RUN', int(task, 'run_id'))} expired without a beat`
  const failures = int(task, 'failures') + 1
  return yield* tryAgain(context, task, { actor: 'clock', failures, error, run: { state: 'lost', error }, type: 'task.lease_expired' })
}

/** Full jitter: a random time up to min(15 minutes, 2 s · 2^failures), so that tasks that failed together do not come back together. */
function backOffMs(failures: number, random: () => number): number {
  return Math.floor(random() * Math.min(mostBackOffMs, baseBackOffMs * 2 ** failures))
}

/** Small, so that claims get between two sweeps when thousands of leases expired at once. */
const atOnce = 50

type Swept = {
  /** When the next one is due; null: nothing is. In the past: there is more to do already. */
  readonly nextAt: number | null
}

/** The delayed tasks' condition must be the literal of its index. */
const delayed = "status = 'pending' AND queue_at = 1000000000000000"

export function* sweep(context: PlaneContext): Command<Swept> {
  const now = context.now()
  yield* shortenLeases(context)
  const expired = yield [`SELECT * FROM tasks WHERE status = 'running' AND available_at <= ? ORDER BY available_at LIMIT ${atOnce}`, [now]]
  for (const task of expired) yield* expireLease(context, task)
  const ready = yield [
    `UPDATE tasks SET queue_at = ${readyQueueAt} WHERE id IN
      (SELECT id FROM tasks WHERE ${delayed} AND available_at <= ? ORDER BY available_at LIMIT ${atOnce * 4}) RETURNING id, role, labels`,
    [now],
  ]
  yield* moveLabels(ready)
  for (const role of new Set(ready.map((row) => text(row, 'role')))) yield* context.store.announce(readyTopic(role))
  return { nextAt: yield* nextDue() }
}

/** No lease is longer than the longest one: this one was given before the clock was set back. Its holder extends it with the next beat. */
function* shortenLeases({ now, options }: PlaneContext): Command<void> {
  const longest = now() + options.leaseSeconds * 1_000
  yield ["UPDATE tasks SET available_at = ? + lease_ms WHERE status = 'running' AND available_at > ?", [now(), longest]]
}

/** When the next lease expires or the next delayed task may run. ORDER BY and not min(): so that SQLite takes the small indexes. */
export function* nextDue(): Command<number | null> {
  const rows = yield [
    `SELECT * FROM (SELECT available_at FROM tasks WHERE status = 'running' ORDER BY available_at LIMIT 1) AS lease
      UNION ALL SELECT * FROM (SELECT available_at FROM tasks WHERE ${delayed} ORDER BY available_at LIMIT 1) AS start`,
  ]
  return rows.length === 0 ? null : Math.min(...rows.map((row) => int(row, 'available_at')))
}
