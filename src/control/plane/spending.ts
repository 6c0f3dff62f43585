/** Serves the budgets: limits, a forecast and the ledger to operators, reservations to runs; and wakes tasks that wait for budget. */

import { type Caller, onlyOperator, onlyRun, signatureOf } from '../contract/caller.ts'
import { type Budget, type BudgetPatch, type LedgerEntry, type LedgerQuery, ledgerEntry } from '../contract/fleet-shapes.ts'
import type { BudgetPlane } from '../contract/plane.ts'
import { PlaneRefusal } from '../contract/plane-refusal.ts'
import type { Command, Row } from '../contract/store-port.ts'
import {
  type BudgetDay,
  budgetDayOf,
  currentDay,
  daysUpTo,
  isTimeZone,
  readBudgetSettings,
  shortageKind,
  shortageRefusal,
  type Used,
  unused,
  usedByScope,
  writeBudgetSettings,
} from './budget/limits.ts'
import {
  assertReportLimit,
  type ReserveCall,
  type ReserveOutcome,
  remainingFor,
  reserveTokens,
  settleTokens,
} from './budget/reservations.ts'
import { idOrNull, int, intOrNull, marks, numberOf, type PlaneContext, queryNumber, queryOne, text, textOrNull, time } from './command.ts'
import { recordEvent } from './events.ts'
import { blockTask, noLease } from './tasks/end-task.ts'
import { readyQueueAt, readyTopic, recordTask } from './tasks/task-change.ts'

export function createBudgetPlane(context: PlaneContext): BudgetPlane {
  const { store } = context
  return {
    async get(caller) {
      onlyOperator(caller, 'read the budget')
      return await store.read(() => readBudget(context))
    },
    async set(caller, patch) {
      const operator = onlyOperator(caller, 'change the budget')
      return await store.write(() => changeBudget(context, { operator, patch }))
    },
    async ledger(caller, query) {
      onlyOperator(caller, 'read the ledger')
      return await store.read(() => readLedger(query))
    },
    async remaining(caller) {
      const { id, role, taskId } = onlyRun(caller, 'ask for its budget')
      return await store.read(() => remainingFor(context, { role, agentId: id, taskId: numberOf(taskId) }))
    },
    async reserve(caller, request) {
      const run = onlyRun(caller, 'reserve tokens')
      const reserved = await store.write(() => reserveOrBlock(context, { caller: run, request }))
      if (!reserved.ok) throw shortageRefusal(reserved.shortage)
      return reserved.reservation
    },
    async settle(caller, request) {
      const run = onlyRun(caller, 'settle tokens')
      await assertReportLimit(context, { caller, agentId: run.id, tokens: request.tokens, reservation: request.reservation_id })
      return await store.write(() => settleTokens(context, { caller: run, request }))
    },
  }
}

/** Reserves tokens, or blocks the task when its budget is spent. Open reservations of other calls of the run then count as spent. */
function* reserveOrBlock(context: PlaneContext, reserving: ReserveCall): Command<ReserveOutcome> {
  const reserved = yield* reserveTokens(context, reserving)
  // In the other cases a moment or a smaller request helps.
  if (reserved.ok || shortageKind(reserved.shortage) !== 'spent') return reserved
  const { message } = shortageRefusal(reserved.shortage)
  const by = { actor: signatureOf(reserving.caller), error: message }
  yield* blockTask(context, numberOf(reserving.caller.taskId), 'budget_blocked', null, by)
  return reserved
}

/** Changes the limits. A limit below what is spent stops further reservations. @throws PlaneRefusal bad_request for an unknown zone */
export function* changeBudget(
  context: PlaneContext,
  { operator, patch }: { readonly operator: Caller; readonly patch: BudgetPatch },
): Command<Budget> {
  if (patch.timezone !== undefined && !isTimeZone(patch.timezone))
    throw new PlaneRefusal('bad_request', `timezone "${patch.timezone}" is not a time zone; write one like Europe/Ljubljana or UTC`)
  const before = yield* readBudgetSettings()
  const settings = { ...before, ...patch }
  yield* writeBudgetSettings(settings)
  const actor = signatureOf(operator)
  yield* recordEvent(context, { type: 'budget.changed', actor, data: { before, after: settings } })
  yield* wakeBlocked(context, actor)
  return yield* readBudget(context)
}

function* readBudget(context: PlaneContext): Command<Budget> {
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
    hard_limit_exceeded: settings.daily_tokens !== null && all.spent >= settings.daily_tokens,
    roles: scopesOfKind('role', { limits: new Map(Object.entries(settings.allocation)), used }),
    agents: scopesOfKind('agent', { limits: yield* agentLimits(), used }),
    forecast_today: forecastOf(all.spent, { now, day }),
    days: yield* lastDays(day.day),
    blocked_tasks: yield* queryNumber("SELECT COUNT(*) AS value FROM tasks WHERE status = 'budget_blocked'"),
  }
}

function* agentLimits(): Command<ReadonlyMap<string, number | null>> {
  const rows = yield ['SELECT id, daily_tokens FROM agents WHERE daily_tokens IS NOT NULL ORDER BY place']
  return new Map(rows.map((row) => [text(row, 'id'), intOrNull(row, 'daily_tokens')]))
}

type ScopeView = { readonly limit: number | null; readonly spent: number; readonly reserved: number; readonly remaining: number | null }

function scopeView(limit: number | null, { spent, reserved }: Used = unused): ScopeView {
  return { limit, spent, reserved, remaining: limit === null ? null : Math.max(0, limit - spent - reserved) }
}

type ScopeFigures = { readonly limits: ReadonlyMap<string, number | null>; readonly used: ReadonlyMap<string, Used> }

/** Returns the scopes with a limit in the order of the limits, then those that only spent something. */
function scopesOfKind(kind: 'role' | 'agent', { limits, used }: ScopeFigures): Record<string, ScopeView> {
  const spending = [...used.keys()].flatMap((scope) => (scope.startsWith(`${kind}:`) ? [scope.slice(kind.length + 1)] : []))
  const names = new Set([...limits.keys(), ...spending.sort()])
  return Object.fromEntries([...names].map((name) => [name, scopeView(limits.get(name) ?? null, used.get(`${kind}:${name}`))]))
}

/** In the first minutes of a day a forecast would be a guess from one call. */
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

function* readLedger({ after, limit }: LedgerQuery): Command<{ readonly entries: readonly LedgerEntry[]; readonly next: number | null }> {
  const rows = yield ['SELECT * FROM ledger WHERE id > ? ORDER BY id LIMIT ?', [after, limit + 1]]
  const entries = rows.slice(0, limit).map(entryOf)
  return { entries, next: rows.length > limit ? (entries.at(-1)?.id ?? null) : null }
}

function entryOf(row: Row): LedgerEntry {
  return {
    id: int(row, 'id'),
    at: time(row, 'at'),
    day: text(row, 'day'),
    role: textOrNull(row, 'role'),
    agent_id: text(row, 'agent_id'),
    task_id: idOrNull('TASK', intOrNull(row, 'task_id')),
    run_id: idOrNull('RUN', intOrNull(row, 'run_id')),
    tokens: int(row, 'tokens'),
    reason: ledgerEntry.shape.reason.parse(row.reason),
    model: text(row, 'model'),
  }
}

/** Wakes blocked tasks at the first call of a day, in whichever daemon; does nothing later that day. */
export async function rolloverBudget(context: PlaneContext): Promise<void> {
  if (await context.store.read(() => isSameDay(context))) return
  await context.store.write(() => beginDay(context))
}

function* isSameDay(context: PlaneContext): Command<boolean> {
  const row = yield* queryOne("SELECT value FROM settings WHERE name = 'budget_day'")
  return row?.value === (yield* currentDay(context)).day
}

function* beginDay(context: PlaneContext): Command<void> {
  if (yield* isSameDay(context)) return
  const { day } = yield* currentDay(context)
  yield ["INSERT INTO settings (name, value) VALUES ('budget_day', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", [day]]
  yield* wakeBlocked(context, 'clock')
}

/** Every other command waits meanwhile, so thousands of tasks must not take a statement each. */
const atOnce = 500

/** @returns how many tasks were woken */
export function* wakeBlocked(context: PlaneContext, actor: string): Command<number> {
  const ids = (yield* affordableTasks(context)).map((row) => int(row, 'id'))
  for (let at = 0; at < ids.length; at += atOnce) yield* wakeSome(context, ids.slice(at, at + atOnce), actor)
  return ids.length
}

function* affordableTasks(context: PlaneContext): Command<readonly Row[]> {
  const rows = yield [
    `SELECT id, role, agent_id FROM tasks WHERE status = 'budget_blocked'
      AND (budget_tokens IS NULL OR tokens_used + tokens_reserved < budget_tokens) ORDER BY id${context.dialect.forUpdate}`,
  ]
  const left = new Map<string, number | null>()
  const payer = (row: Row) => ({ role: text(row, 'role'), agentId: textOrNull(row, 'agent_id'), taskId: null })
  const keyOf = (row: Row) => JSON.stringify(payer(row))
  for (const row of rows) if (!left.has(keyOf(row))) left.set(keyOf(row), yield* remainingFor(context, payer(row)))
  return rows.filter((row) => left.get(keyOf(row)) !== 0)
}

/** A task that waits for budget has no lease, and no cancel request, which would have ended it. */
const wokenColumns = { status: 'pending', blocked_reason: null, error: null, result: null, ended_at: null, ...noLease }
const columns = Object.keys(wokenColumns)

function* wakeSome(context: PlaneContext, ids: readonly number[], actor: string): Command<void> {
  const now = context.now()
  const rows = yield [
    `UPDATE tasks SET ${columns.map((name) => `${name} = ?`).join(', ')}, available_at = ?, queue_at = ${readyQueueAt},
      version = version + 1, updated_at = ? WHERE id IN (${marks(ids)}) RETURNING id, title, status, role, agent_id, run_id`,
    [...Object.values(wokenColumns), now, now, ...ids],
  ]
  const data = { available_at: new Date(now).toISOString() }
  for (const row of rows.toSorted((a, b) => int(a, 'id') - int(b, 'id')))
    yield* recordTask(context, row, { type: 'task.woken', actor, data })
  for (const role of new Set(rows.map((row) => text(row, 'role')))) yield* context.store.announce(readyTopic(role))
}
