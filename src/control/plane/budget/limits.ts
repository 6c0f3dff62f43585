/** Computes the limits: what the operator set, the day and the budgets that a token counts in, and which of them has too little left. */

import { succeeds } from '../../../kit/errors.ts'
import { type BudgetSettings, budgetSettings } from '../../contract/fleet-shapes.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Command, Row } from '../../contract/store-port.ts'
import { int, intOrNull, marks, type PlaneContext, queryOne, text } from '../command.ts'

export type BudgetDay = {
  /** YYYY-MM-DD */
  readonly day: string
  readonly beginsAt: number
  readonly endsAt: number
}

/** Returns the day of a time. It has 23 or 25 hours where the clocks change; where a day has no midnight it begins at its first moment. */
export function budgetDayOf(now: number, zone: string): BudgetDay {
  const local = Temporal.Instant.fromEpochMilliseconds(Math.floor(now)).toZonedDateTimeISO(zone)
  const begin = local.startOfDay()
  const date = begin.toPlainDate()
  return { day: date.toString(), beginsAt: begin.epochMilliseconds, endsAt: date.add({ days: 1 }).toZonedDateTime(zone).epochMilliseconds }
}

/** Returns the names of `count` days up to `day`, oldest first. */
export function daysUpTo(day: string, count: number): readonly string[] {
  const last = Temporal.PlainDate.from(day)
  return Array.from({ length: count }, (_, at) => last.subtract({ days: count - 1 - at }).toString())
}

/** Asks Intl, because Temporal would also accept the zone inside a whole time, such as 2026-01-01T00:00[Europe/Berlin]. */
export function isTimeZone(zone: string): boolean {
  return succeeds(() => new Intl.DateTimeFormat('en', { timeZone: zone }))
}

const unlimited: BudgetSettings = { daily_tokens: null, allocation: {}, timezone: 'UTC' }

export function* readBudgetSettings(): Command<BudgetSettings> {
  const row = yield* queryOne('SELECT value FROM settings WHERE name = ?', ['budget'])
  return settingsOf(row ? text(row, 'value') : null)
}

/** Parses the value that the settings have under `budget`. */
export function settingsOf(value: string | null): BudgetSettings {
  return value === null ? unlimited : budgetSettings.parse(JSON.parse(value))
}

export function* writeBudgetSettings(settings: BudgetSettings): Command<void> {
  yield [
    "INSERT INTO settings (name, value) VALUES ('budget', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
    [JSON.stringify(settings)],
  ]
}

/** Returns the day in which tokens that are spent now count. */
export function* currentDay(context: Pick<PlaneContext, 'now'>): Command<BudgetDay> {
  const { timezone } = yield* readBudgetSettings()
  return budgetDayOf(context.now(), timezone)
}

export type Payer = { readonly role: string | null; readonly agentId: string | null }

export type Scope = {
  /** `agent:NAME`, `role:NAME` or `*`. */
  readonly name: string
  /** Tokens a day; null: no limit. */
  readonly limit: number | null
}

export function* scopesOf(payer: Payer, settings: BudgetSettings): Command<readonly Scope[]> {
  const agent = payer.agentId === null ? undefined : yield* queryOne('SELECT daily_tokens FROM agents WHERE id = ?', [payer.agentId])
  return scopesFor(payer, settings, agent ? intOrNull(agent, 'daily_tokens') : null)
}

/** Returns the budgets from the smallest to the whole. `daily` is the limit of the agent. */
export function scopesFor({ role, agentId }: Payer, settings: BudgetSettings, daily: number | null): readonly Scope[] {
  return [
    ...(agentId === null ? [] : [{ name: `agent:${agentId}`, limit: daily }]),
    ...(role === null ? [] : [{ name: `role:${role}`, limit: roleLimit(settings, role) }]),
    { name: '*', limit: settings.daily_tokens },
  ]
}

/** Reads own fields only: a role may have the name of a field that every object has. */
function roleLimit({ allocation }: BudgetSettings, role: string): number | null {
  return Object.hasOwn(allocation, role) ? (allocation[role] ?? null) : null
}

type DayChange = { readonly day: string; readonly payer: Payer; readonly spent: number; readonly reserved: number }

/** Adds to the rows of all scopes, and creates them for the first token of the day. */
export function* changeDay({ day, payer, spent, reserved }: DayChange): Command<void> {
  const names = scopesFor(payer, unlimited, null).map(({ name }) => name)
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
  return usedByScope(rows)
}

export function usedByScope(rows: readonly Row[]): ReadonlyMap<string, Used> {
  return new Map(rows.map((row) => [text(row, 'scope'), { spent: int(row, 'spent'), reserved: int(row, 'reserved') }]))
}

export type Shortage = {
  /** `task`, `agent:NAME`, `role:NAME` or `*`. */
  readonly scope: string
  readonly limit: number
  readonly spent: number
  readonly reserved: number
  readonly asked: number
  /** Only the budgets of a day have it. */
  readonly nextDayAt?: number
}

/**
 * `soon`: only open reservations are in the way, so the same request may succeed in a moment. `too_much`: the request exceeds the limit
 * itself, while something is left. `spent`: only the next day or a higher limit helps, so the task waits.
 */
type ShortageKind = 'soon' | 'too_much' | 'spent'

export function shortageKind({ limit, spent, reserved, asked }: Shortage): ShortageKind {
  if (asked > limit && spent + reserved < limit) return 'too_much'
  return spent + asked <= limit ? 'soon' : 'spent'
}

const advice: { readonly [K in ShortageKind]: string } = {
  soon: 'calls that are under way hold the rest; ask again in a moment',
  too_much: 'ask for fewer tokens, or raise the limit',
  spent: 'the task waits until the limit is raised or the next day begins',
}

const retryMs = 1_000

export function shortageRefusal(shortage: Shortage): PlaneRefusal {
  const { scope, limit, spent, reserved, asked, nextDayAt } = shortage
  const kind = shortageKind(shortage)
  const remaining = Math.max(0, limit - spent - reserved)
  const message = `${asked} tokens are more than the ${remaining} left of ${limit} ${nameOf(scope)}; ${advice[kind]}`
  return new PlaneRefusal('budget_exceeded', message, {
    ...{ scope, limit, spent, reserved, remaining, asked, shortage: kind },
    next_day_at: nextDayAt && new Date(nextDayAt).toISOString(),
    retry_after_ms: kind === 'soon' ? retryMs : undefined,
  })
}

function nameOf(scope: string): string {
  if (scope === '*') return 'for all agents today'
  if (scope === 'task') return 'for this task'
  const [kind, ...name] = scope.split(':')
  return `for ${kind} ${name.join(':')} today`
}
