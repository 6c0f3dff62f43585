/** Shows the budget to an operator: limits, what today cost, a forecast and the last 30 days. */

import type { Budget, BudgetSettings } from '../../contract/fleet-shapes.ts'
import type { Command, Row } from '../../contract/store-port.ts'
import { type BudgetDay, budgetDayOf, daysUpTo } from '../budget/budget-day.ts'
import { readBudgetSettings } from '../budget/budget-settings.ts'
import { type Used, unused, usedOf } from '../budget/scopes.ts'
import type { PlaneContext } from '../context.ts'
import { amount, int, intOrNull, text } from '../row.ts'

export function* readBudget(context: PlaneContext): Command<Budget> {
  const settings = yield* readBudgetSettings()
  const now = context.now()
  const day = budgetDayOf(now, settings.timezone)
  const used = usedByScope(yield ['SELECT scope, spent, reserved FROM budget_days WHERE day = ?', [day.day]])
  const all = scopeView(settings.daily_tokens, used.get('*'))
  return {
    ...settings,
    day: day.day,
    next_day_at: new Date(day.endsAt).toISOString(),
    spent_today: all.spent,
    reserved: all.reserved,
    remaining: all.remaining,
    hard_limit_exceeded: isUsedUp(settings.daily_tokens, all.spent),
    roles: scopesOfKind('role', { limits: new Map(Object.entries(settings.allocation)), used }),
    agents: scopesOfKind('agent', { limits: yield* agentLimits(), used }),
    forecast_today: forecastOf(all.spent, { now, day }),
    days: yield* lastDays(day.day),
    blocked_tasks: yield* amount("SELECT COUNT(*) AS value FROM tasks WHERE status = 'budget_blocked'"),
  }
}

/** Nothing more may be spent today. */
export function isUsedUp(limit: BudgetSettings['daily_tokens'], spent: number): boolean {
  return limit !== null && spent >= limit
}

function usedByScope(rows: readonly Row[]): ReadonlyMap<string, Used> {
  return new Map(rows.map((row) => [text(row, 'scope'), usedOf(row)]))
}

function* agentLimits(): Command<ReadonlyMap<string, number | null>> {
  const rows = yield ['SELECT id, daily_tokens FROM agents WHERE daily_tokens IS NOT NULL ORDER BY place']
  return new Map(rows.map((row) => [text(row, 'id'), intOrNull(row, 'daily_tokens')]))
}

type ScopeView = { readonly limit: number | null; readonly spent: number; readonly reserved: number; readonly remaining: number | null }

function scopeView(limit: number | null, { spent, reserved }: Used = unused): ScopeView {
  return { limit, spent, reserved, remaining: limit === null ? null : Math.max(0, limit - spent - reserved) }
}

type Kind = { readonly limits: ReadonlyMap<string, number | null>; readonly used: ReadonlyMap<string, Used> }

/** Those with a limit, in its order, then those that only spent something. */
function scopesOfKind(kind: 'role' | 'agent', { limits, used }: Kind): Record<string, ScopeView> {
  const spending = [...used.keys()].flatMap((scope) => (scope.startsWith(`${kind}:`) ? [scope.slice(kind.length + 1)] : []))
  const names = new Set([...limits.keys(), ...spending.sort()])
  return Object.fromEntries([...names].map((name) => [name, scopeView(limits.get(name) ?? null, used.get(`${kind}:${name}`))]))
}

/** A forecast from the first minutes of a day would be a guess from one call. */
const leastElapsedMs = 5 * 60_000

function forecastOf(spent: number, { now, day: { beginsAt, endsAt } }: { readonly now: number; readonly day: BudgetDay }): number {
  return Math.round((spent * (endsAt - beginsAt)) / Math.max(leastElapsedMs, now - beginsAt))
}

const daysShown = 30

function* lastDays(today: string): Command<Budget['days']> {
  const names = daysUpTo(today, daysShown)
  const rows = yield [
    `SELECT day, scope, spent FROM budget_days WHERE day >= ? AND day <= ? AND (scope = '*' OR scope LIKE 'role:%') ORDER BY scope`,
    [names[0] ?? today, today],
  ]
  return names.map((day) => {
    const of = rows.filter((row) => text(row, 'day') === day)
    const roles = of.filter((row) => text(row, 'scope') !== '*' && int(row, 'spent') > 0)
    return {
      day,
      spent: of.filter((row) => text(row, 'scope') === '*').reduce((sum, row) => sum + int(row, 'spent'), 0),
      by_role: Object.fromEntries(roles.map((row) => [text(row, 'scope').slice('role:'.length), int(row, 'spent')])),
    }
  })
}
