/** Reads and writes the limits that the operator set. */

import { type BudgetSettings, budgetSettings } from '../../contract/fleet-shapes.ts'
import type { Command } from '../../contract/store-port.ts'
import type { PlaneContext } from '../context.ts'
import { first, text } from '../row.ts'
import { type BudgetDay, budgetDayOf } from './budget-day.ts'

const unlimited: BudgetSettings = { daily_tokens: null, allocation: {}, timezone: 'UTC' }

export function* readBudgetSettings(): Command<BudgetSettings> {
  const row = yield* first('SELECT value FROM settings WHERE name = ?', ['budget'])
  return settingsOf(row ? text(row, 'value') : null)
}

/** `value`: what the table has under `budget`. */
export function settingsOf(value: string | null): BudgetSettings {
  return value === null ? unlimited : budgetSettings.parse(JSON.parse(value))
}

export function* writeBudgetSettings(settings: BudgetSettings): Command<void> {
  yield [
    "INSERT INTO settings (name, value) VALUES ('budget', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
    [JSON.stringify(settings)],
  ]
}

/** The day that tokens spent now belong to. */
export function* currentDay(context: Pick<PlaneContext, 'now'>): Command<BudgetDay> {
  const { timezone } = yield* readBudgetSettings()
  return budgetDayOf(context.now(), timezone)
}
