/** Counts what /metrics shows. */

import type { Command } from '../../contract/store-port.ts'
import { currentDay, unused, usedToday } from '../budget/limits.ts'
import type { PlaneContext } from '../context.ts'
import { amount, int, text } from '../row.ts'

export async function readFigures(context: PlaneContext): Promise<Readonly<Record<string, number>>> {
  return await context.store.read(() => figures(context))
}

function* figures(context: PlaneContext): Command<Readonly<Record<string, number>>> {
  const { day } = yield* currentDay(context)
  const { spent, reserved } = (yield* usedToday(day, ['*'])).get('*') ?? unused
  return {
    ...(yield* countsBy('tasks', 'status')),
    ...(yield* countsBy('runs', 'state')),
    ...(yield* countsBy('approvals', 'state')),
    tokens_spent_today: spent,
    tokens_reserved: reserved,
    agents: yield* amount('SELECT COUNT(*) AS value FROM agents'),
    agents_paused: yield* amount('SELECT COUNT(*) AS value FROM agents WHERE paused = 1'),
    events: yield* amount('SELECT COALESCE(MAX(id), 0) AS value FROM events'),
  }
}

/** For example `tasks_pending: 3`. */
function* countsBy(table: 'tasks' | 'runs' | 'approvals', column: 'status' | 'state'): Command<Record<string, number>> {
  const rows = yield [`SELECT ${column} AS name, COUNT(*) AS value FROM ${table} GROUP BY ${column} ORDER BY ${column}`]
  return Object.fromEntries(rows.map((row) => [`${table}_${text(row, 'name')}`, int(row, 'value')]))
}
