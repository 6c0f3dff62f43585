/** Names the budgets that a token counts in: that of its agent, of its role and of all; and changes their day rows. */

import type { BudgetSettings } from '../../contract/fleet-shapes.ts'
import type { Command, Row } from '../../contract/store-port.ts'
import { first, int, intOrNull, marks, text } from '../row.ts'

export type Payer = { readonly role: string | null; readonly agentId: string | null }

export type Scope = {
  /** `agent:NAME`, `role:NAME` or `*`. */
  readonly name: string
  /** Tokens a day; null: no limit. */
  readonly limit: number | null
}

export function* scopesOf(payer: Payer, settings: BudgetSettings): Command<readonly Scope[]> {
  const agent = payer.agentId === null ? undefined : yield* first('SELECT daily_tokens FROM agents WHERE id = ?', [payer.agentId])
  return scopesFor(payer, settings, agent ? intOrNull(agent, 'daily_tokens') : null)
}

/** From the smallest to the whole. `daily`: the limit of the agent. */
export function scopesFor({ role, agentId }: Payer, settings: BudgetSettings, daily: number | null): readonly Scope[] {
  return [
    ...(agentId === null ? [] : [{ name: `agent:${agentId}`, limit: daily }]),
    ...(role === null ? [] : [{ name: `role:${role}`, limit: roleLimit(settings, role) }]),
    { name: '*', limit: settings.daily_tokens },
  ]
}

/** A role may be named like something that every object has. */
function roleLimit({ allocation }: BudgetSettings, role: string): number | null {
  return Object.hasOwn(allocation, role) ? (allocation[role] ?? null) : null
}

export function scopeNamesOf({ role, agentId }: Payer): readonly string[] {
  return [...(agentId === null ? [] : [`agent:${agentId}`]), ...(role === null ? [] : [`role:${role}`]), '*']
}

export type DayChange = { readonly day: string; readonly payer: Payer; readonly spent: number; readonly reserved: number }

/** Adds to the rows of all scopes, and makes them when this is the first token of the day. */
export function* changeDay({ day, payer, spent, reserved }: DayChange): Command<void> {
  const names = scopeNamesOf(payer)
  yield [
    `INSERT INTO budget_days (day, scope, spent, reserved) VALUES ${names.map(() => '(?, ?, ?, ?)').join(', ')} ON CONFLICT (day, scope)
      DO UPDATE SET spent = budget_days.spent + excluded.spent, reserved = budget_days.reserved + excluded.reserved`,
    names.flatMap((name) => [day, name, spent, reserved]),
  ]
}

export type Used = { readonly spent: number; readonly reserved: number }

export const unused: Used = { spent: 0, reserved: 0 }

export function* usedToday(day: string, names: readonly string[]): Command<ReadonlyMap<string, Used>> {
  const rows = yield [`SELECT scope, spent, reserved FROM budget_days WHERE day = ? AND scope IN (${marks(names)})`, [day, ...names]]
  return new Map(rows.map((row) => [text(row, 'scope'), usedOf(row)]))
}

export function usedOf(row: Row): Used {
  return { spent: int(row, 'spent'), reserved: int(row, 'reserved') }
}
