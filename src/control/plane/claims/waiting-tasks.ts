/** Looks at what waits in a role, so that only as many workers try as can get a task. */

import type { Command } from '../../contract/store-port.ts'
import { amount, int, text } from '../row.ts'

export type Ready = {
  /** Tasks that anyone of the role may take; counted no further than `most`. */
  readonly ready: number
  /** Agents for whom alone a task waits. */
  readonly own: ReadonlySet<string>
}

const most = 512

export function* readReady(role: string): Command<Ready> {
  const ready = yield* amount(
    `SELECT count(*) AS value FROM
      (SELECT 1 FROM tasks WHERE status = 'pending' AND role = ? AND agent_id IS NULL AND queue_at < 1000000000000000 LIMIT ${most}) AS ready`,
    [role],
  )
  const rows = yield [
    "SELECT DISTINCT agent_id FROM tasks WHERE status = 'pending' AND agent_id IS NOT NULL AND role = ? AND queue_at < 1000000000000000",
    [role],
  ]
  return { ready, own: new Set(rows.map((row) => text(row, 'agent_id'))) }
}

/** How often each agent was told to come back. */
export function* wakesOf(): Command<ReadonlyMap<string, number>> {
  const rows = yield ['SELECT id, wakes FROM agents']
  return new Map(rows.map((row) => [text(row, 'id'), int(row, 'wakes')]))
}
