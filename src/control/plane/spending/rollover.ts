/** Wakes the tasks that wait for budget when a new day begins. */

import type { Command } from '../../contract/store-port.ts'
import { currentDay } from '../budget/budget-settings.ts'
import type { PlaneContext } from '../context.ts'
import { first, text } from '../row.ts'
import { wakeBlocked } from './wake-blocked.ts'

/** Does nothing when the day is the one of the last call, in whichever daemon. */
export async function rolloverBudget(context: PlaneContext): Promise<void> {
  if (await context.store.read(() => isSameDay(context))) return
  await context.store.write(() => beginDay(context))
}

function* isSameDay(context: PlaneContext): Command<boolean> {
  return (yield* lastDay()) === (yield* currentDay(context)).day
}

function* lastDay(): Command<string | undefined> {
  const row = yield* first("SELECT value FROM settings WHERE name = 'budget_day'")
  return row && text(row, 'value')
}

function* beginDay(context: PlaneContext): Command<void> {
  if (yield* isSameDay(context)) return
  const { day } = yield* currentDay(context)
  yield ["INSERT INTO settings (name, value) VALUES ('budget_day', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", [day]]
  yield* wakeBlocked(context, 'clock')
}
