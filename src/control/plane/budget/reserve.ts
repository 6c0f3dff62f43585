/** Reserves tokens before they are spent: in the budgets of the task, its agent, its role and all, or in none of them. */

import type { Caller } from '../../contract/caller.ts'
import type { Reservation, ReserveRequest } from '../../contract/fleet-shapes.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Command, Row } from '../../contract/store-port.ts'
import { nextId, numberOf, type PlaneContext } from '../context.ts'
import { amount, first, int, intOrNull, marks, text } from '../row.ts'
import { budgetDayOf } from './budget-day.ts'
import { readBudgetSettings } from './budget-settings.ts'
import { type Payer, type Scope, scopesOf, type Used, unused, usedOf, usedToday } from './scopes.ts'
import type { Shortage } from './shortage.ts'

export type Reserving = {
  readonly caller: Extract<Caller, { readonly kind: 'run' }>
  readonly request: ReserveRequest
}

export type Reserved = { readonly ok: true; readonly reservation: Reservation } | { readonly ok: false; readonly shortage: Shortage }

/** With a shortage nothing has changed. @throws PlaneRefusal lease_lost, too_many */
export function* reserveTokens(context: PlaneContext, { caller, request: { tokens, purpose } }: Reserving): Command<Reserved> {
  const [taskId, runId] = [numberOf(caller.taskId), numberOf(caller.runId)]
  const task = yield* reserveInTask(context, { taskId, runId, tokens })
  if ('shortage' in task) return { ok: false, shortage: task.shortage }
  yield* assertFewOpen(runId)
  const payer = { role: text(task.row, 'role'), agentId: caller.id }
  const settings = yield* readBudgetSettings()
  const day = budgetDayOf(context.now(), settings.timezone)
  const taken = yield* reserveInScopes({ scopes: yield* scopesOf(payer, settings), day: day.day, tokens })
  if ('shortage' in taken) {
    yield ['UPDATE tasks SET tokens_reserved = tokens_reserved - ? WHERE id = ?', [tokens, taskId]]
    return { ok: false, shortage: { ...taken.shortage, nextDayAt: day.endsAt } }
  }
  const id = yield* insertReservation(context, { payer, taskId, runId, tokens, purpose, day: day.day })
  const left = Math.min(taken.left, leftOfTask(task.row))
  return { ok: true, reservation: { reservation_id: `RSV-${id}`, tokens, budget_remaining: Number.isFinite(left) ? left : null } }
}

/** More than any runner asks at once: all of them are closed in one transaction when the run ends, while everybody else waits. */
const mostOpen = 256

function* assertFewOpen(runId: number): Command<void> {
  const open = yield* amount("SELECT COUNT(*) AS value FROM reservations WHERE run_id = ? AND state = 'open'", [runId])
  if (open >= mostOpen)
    throw new PlaneRefusal('too_many', `this run has ${open} open reservations; settle some of them first`, { retry_after_ms: 1_000 })
}

/** One statement checks the lease, checks the task's own budget, and locks the task before any other row. */
function* reserveInTask(
  context: PlaneContext,
  { taskId, runId, tokens }: { readonly taskId: number; readonly runId: number; readonly tokens: number },
): Command<{ readonly row: Row } | { readonly shortage: Shortage }> {
  const columns = 'role, budget_tokens, tokens_used, tokens_reserved'
  const isHeld = "id = ? AND run_id = ? AND status = 'running' AND available_at > ?"
  const row = yield* first(
    `UPDATE tasks SET tokens_reserved = tokens_reserved + ? WHERE ${isHeld}
      AND (budget_tokens IS NULL OR tokens_used + tokens_reserved + ? <= budget_tokens) RETURNING ${columns}`,
    [tokens, taskId, runId, context.now(), tokens],
  )
  if (row) return { row }
  const task = yield* first(`SELECT ${columns} FROM tasks WHERE ${isHeld}`, [taskId, runId, context.now()])
  if (!task) throw new PlaneRefusal('lease_lost', 'this run no longer has the lease of its task; nothing was reserved, stop the run')
  const [spent, reserved] = [int(task, 'tokens_used'), int(task, 'tokens_reserved')]
  return { shortage: { scope: 'task', limit: int(task, 'budget_tokens'), spent, reserved, asked: tokens } }
}

function leftOfTask(row: Row): number {
  const limit = intOrNull(row, 'budget_tokens')
  return limit === null ? Number.POSITIVE_INFINITY : limit - int(row, 'tokens_used') - int(row, 'tokens_reserved')
}

type InScopes = { readonly scopes: readonly Scope[]; readonly day: string; readonly tokens: number }

/** @returns what is left in the scope with the least; Infinity without a limit */
function* reserveInScopes(asked: InScopes): Command<{ readonly left: number } | { readonly shortage: Shortage }> {
  const { scopes, day, tokens } = asked
  const taken = new Map(yield* takeFrom(asked))
  const fresh = yield* beginRows({ ...asked, scopes: scopes.filter(({ name }) => !taken.has(name)) })
  for (const [name, used] of yield* takeFrom({ ...asked, scopes: fresh })) taken.set(name, used)
  const short = scopes.find(({ name }) => !taken.has(name))
  if (short?.limit !== undefined && short.limit !== null) {
    yield* returnTokens({ names: [...taken.keys()], day, tokens })
    const used = (yield* usedToday(day, [short.name])).get(short.name) ?? unused
    return { shortage: { scope: short.name, limit: short.limit, ...used, asked: tokens } }
  }
  return { left: Math.min(...scopes.map(({ name, limit }) => leftOf(limit, taken.get(name) ?? unused))) }
}

function leftOf(limit: number | null, { spent, reserved }: Used): number {
  return limit === null ? Number.POSITIVE_INFINITY : limit - spent - reserved
}

/** The condition and the change are one statement. @returns the scopes that had enough left, with what they have used now */
function* takeFrom({ scopes, day, tokens }: InScopes): Command<ReadonlyMap<string, Used>> {
  if (scopes.length === 0) return new Map()
  const limits = scopes.map(() => 'WHEN ? THEN ?').join(' ')
  const rows = yield [
    `UPDATE budget_days SET reserved = reserved + ? WHERE day = ? AND scope IN (${marks(scopes)})
      AND spent + reserved + ? <= CASE scope ${limits} ELSE 0 END RETURNING scope, spent, reserved`,
    [
      ...[tokens, day, ...scopes.map(({ name }) => name), tokens],
      ...scopes.flatMap(({ name, limit }) => [name, limit ?? Number.MAX_SAFE_INTEGER]),
    ],
  ]
  return new Map(rows.map((row) => [text(row, 'scope'), usedOf(row)]))
}

/** @returns the scopes that had no row today, and have one now */
function* beginRows({ scopes, day }: InScopes): Command<readonly Scope[]> {
  if (scopes.length === 0) return []
  const rows = yield [
    `INSERT INTO budget_days (day, scope, spent, reserved) VALUES ${scopes.map(() => '(?, ?, 0, 0)').join(', ')}
      ON CONFLICT (day, scope) DO NOTHING RETURNING scope`,
    scopes.flatMap(({ name }) => [day, name]),
  ]
  const made = new Set(rows.map((row) => text(row, 'scope')))
  return scopes.filter(({ name }) => made.has(name))
}

function* returnTokens({
  names,
  day,
  tokens,
}: {
  readonly names: readonly string[]
  readonly day: string
  readonly tokens: number
}): Command<void> {
  if (names.length > 0)
    yield [`UPDATE budget_days SET reserved = reserved - ? WHERE day = ? AND scope IN (${marks(names)})`, [tokens, day, ...names]]
}

type NewReservation = {
  readonly payer: Payer
  readonly taskId: number
  readonly runId: number
  readonly tokens: number
  readonly purpose: string
  readonly day: string
}

function* insertReservation(context: PlaneContext, { payer, taskId, runId, tokens, purpose, day }: NewReservation): Command<number> {
  const id = yield* nextId('reservations')
  yield [
    `INSERT INTO reservations (id, run_id, task_id, day, role, agent_id, tokens, state, purpose, model, created_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, 'open', ?, '', ?)`,
    [id, runId, taskId, day, payer.role, payer.agentId, tokens, purpose, context.now()],
  ]
  return id
}
