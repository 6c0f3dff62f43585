/** Does what the clock asks of tasks: takes back expired leases and lets delayed tasks into the queue. */

import type { Command } from '../../contract/store-port.ts'
import type { PlaneContext } from '../context.ts'
import { int, text } from '../row.ts'
import { readyTopic } from '../tasks/task-change.ts'
import { moveLabels } from '../tasks/task-labels.ts'
import { readyQueueAt } from '../tasks/task-row.ts'
import { expireLease } from './keep-lease.ts'

/** Small, so that claims get between two sweeps when thousands of leases expired at once. */
const atOnce = 50

export type Swept = {
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
