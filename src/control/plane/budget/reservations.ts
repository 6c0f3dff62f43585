/** Reserves tokens for runs, replaces reservations by what was really spent, and counts every token once. */

import { type Caller, type RunCaller, signatureOf } from '../../contract/caller.ts'
import type { BudgetSettings, Reservation, ReserveRequest, Settled, SettleRequest } from '../../contract/fleet-shapes.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Command, Row } from '../../contract/store-port.ts'
import { int, intOrNull, marks, nextId, numberOf, type PlaneContext, queryNumber, queryOne, text } from '../command.ts'
import { recordEvent } from '../events.ts'
import {
  budgetDayOf,
  changeDay,
  currentDay,
  type Payer,
  readBudgetSettings,
  type Scope,
  type Shortage,
  scopesOf,
  type Used,
  unused,
  usedByScope,
  usedToday,
} from './limits.ts'

export type ReserveCall = { readonly caller: RunCaller; readonly request: ReserveRequest }

export type ReserveOutcome = { readonly ok: true; readonly reservation: Reservation } | { readonly ok: false; readonly shortage: Shortage }

/** Reserves tokens, or changes nothing and returns the shortage. @throws PlaneRefusal lease_lost, too_many */
export function* reserveTokens(context: PlaneContext, { caller, request: { tokens, purpose } }: ReserveCall): Command<ReserveOutcome> {
  const [taskId, runId] = [numberOf(caller.taskId), numberOf(caller.runId)]
  const task = yield* reserveInTask(context, { taskId, runId, tokens })
  if ('shortage' in task) return { ok: false, shortage: task.shortage }
  yield* assertFewOpen(runId)
  const payer = { role: text(task.row, 'role'), agentId: caller.id }
  const settings = yield* readBudgetSettings()
  const day = budgetDayOf(context.now(), settings.timezone)
  const inScopes = yield* reserveInScopes({ scopes: yield* scopesOf(payer, settings), day: day.day, tokens })
  if ('shortage' in inScopes) {
    yield ['UPDATE tasks SET tokens_reserved = tokens_reserved - ? WHERE id = ?', [tokens, taskId]]
    return { ok: false, shortage: { ...inScopes.shortage, nextDayAt: day.endsAt } }
  }
  const id = yield* insertReservation(context, { payer, taskId, runId, tokens, purpose, day: day.day })
  const left = Math.min(inScopes.left, leftOfTask(task.row))
  return { ok: true, reservation: { reservation_id: `RSV-${id}`, tokens, budget_remaining: Number.isFinite(left) ? left : null } }
}

/** No runner asks for this many at once. The end of the run closes all of them in one transaction, while every other command waits. */
const mostOpen = 256

function* assertFewOpen(runId: number): Command<void> {
  const open = yield* queryNumber("SELECT COUNT(*) AS value FROM reservations WHERE run_id = ? AND state = 'open'", [runId])
  if (open >= mostOpen)
    throw new PlaneRefusal('too_many', `this run has ${open} open reservations; settle some of them first`, { retry_after_ms: 1_000 })
}

/** Checks the lease and the task's own budget, and locks the task before any other row, in one statement. */
function* reserveInTask(
  context: PlaneContext,
  { taskId, runId, tokens }: { readonly taskId: number; readonly runId: number; readonly tokens: number },
): Command<{ readonly row: Row } | { readonly shortage: Shortage }> {
  const columns = 'role, budget_tokens, tokens_used, tokens_reserved'
  const isHeld = "id = ? AND run_id = ? AND status = 'running' AND available_at > ?"
  const row = yield* queryOne(
    `UPDATE tasks SET tokens_reserved = tokens_reserved + ? WHERE ${isHeld}
      AND (budget_tokens IS NULL OR tokens_used + tokens_reserved + ? <= budget_tokens) RETURNING ${columns}`,
    [tokens, taskId, runId, context.now(), tokens],
  )
  if (row) return { row }
  const task = yield* queryOne(`SELECT ${columns} FROM tasks WHERE ${isHeld}`, [taskId, runId, context.now()])
  if (!task) throw new PlaneRefusal('lease_lost', 'this run no longer has the lease of its task; nothing was reserved, stop the run')
  const [spent, reserved] = [int(task, 'tokens_used'), int(task, 'tokens_reserved')]
  return { shortage: { scope: 'task', limit: int(task, 'budget_tokens'), spent, reserved, asked: tokens } }
}

function leftOfTask(row: Row): number {
  const limit = intOrNull(row, 'budget_tokens')
  return limit === null ? Number.POSITIVE_INFINITY : limit - int(row, 'tokens_used') - int(row, 'tokens_reserved')
}

type ScopeReservation = { readonly scopes: readonly Scope[]; readonly day: string; readonly tokens: number }

/** Reserves in every budget, or in none. @returns what is left in the budget with the least; Infinity without a limit */
function* reserveInScopes(reservation: ScopeReservation): Command<{ readonly left: number } | { readonly shortage: Shortage }> {
  const { scopes, day, tokens } = reservation
  const reserved = new Map(yield* reserveIfLeft(reservation))
  const fresh = yield* beginRows({ ...reservation, scopes: scopes.filter(({ name }) => !reserved.has(name)) })
  for (const [name, used] of yield* reserveIfLeft({ ...reservation, scopes: fresh })) reserved.set(name, used)
  const short = scopes.find(({ name }) => !reserved.has(name))
  if (short?.limit !== undefined && short.limit !== null) {
    yield* returnTokens(day, [...reserved.keys()], tokens)
    const used = (yield* usedToday(day, [short.name])).get(short.name) ?? unused
    return { shortage: { scope: short.name, limit: short.limit, ...used, asked: tokens } }
  }
  return { left: Math.min(...scopes.map(({ name, limit }) => leftOf(limit, reserved.get(name) ?? unused))) }
}

function leftOf(limit: number | null, { spent, reserved }: Used): number {
  return limit === null ? Number.POSITIVE_INFINITY : limit - spent - reserved
}

/** Checks and changes the rows in one statement. @returns the budgets that had enough left, with what they have used now */
function* reserveIfLeft({ scopes, day, tokens }: ScopeReservation): Command<ReadonlyMap<string, Used>> {
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
  return usedByScope(rows)
}

/** Creates missing rows. @returns the budgets that had no row today */
function* beginRows({ scopes, day }: ScopeReservation): Command<readonly Scope[]> {
  if (scopes.length === 0) return []
  const rows = yield [
    `INSERT INTO budget_days (day, scope, spent, reserved) VALUES ${scopes.map(() => '(?, ?, 0, 0)').join(', ')}
      ON CONFLICT (day, scope) DO NOTHING RETURNING scope`,
    scopes.flatMap(({ name }) => [day, name]),
  ]
  const inserted = new Set(rows.map((row) => text(row, 'scope')))
  return scopes.filter(({ name }) => inserted.has(name))
}

function* returnTokens(day: string, names: readonly string[], tokens: number): Command<void> {
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

/** Counts all that a lost run had reserved as spent, because nobody can tell how much of it was. The caller holds the lock of the run's task. */
export function* forfeitRun(context: PlaneContext, runId: number): Command<void> {
  const rows = yield [
    "UPDATE reservations SET state = 'forfeited', spent = tokens, settled_at = ? WHERE run_id = ? AND state = 'open' RETURNING *",
    [context.now(), runId],
  ]
  for (const row of inOrder(rows)) {
    const { payer, day, taskId, tokens } = reservationOf(row)
    const added = yield* addSettled({ runId, taskId, tokens, held: tokens })
    yield* countSpent(context, { payer, day, tokens: added, freed: tokens, reason: 'forfeited', taskId, runId, model: text(row, 'model') })
  }
}

/**
 * Counts the total that a run reports: adds to the ledger what exceeds the tokens already counted for the run, and raises `tokens_used` of
 * the run and its task. A reservation that is settled later counts only where the sum of all reservations exceeds the total, so no token
 * counts twice and a late report loses none. `run` has the columns id, task_id, agent_id, role and tokens_used, read or changed in this
 * command.
 */
export function* reportTotal(context: PlaneContext, run: Row, total: number): Command<void> {
  const tokens = Math.max(0, total - int(run, 'tokens_used'))
  if (tokens === 0) return
  const [runId, taskId] = [int(run, 'id'), int(run, 'task_id')]
  yield ['UPDATE runs SET tokens_used = tokens_used + ? WHERE id = ?', [tokens, runId]]
  yield ['UPDATE tasks SET tokens_used = tokens_used + ? WHERE id = ?', [tokens, taskId]]
  const { day } = yield* currentDay(context)
  const payer = { role: text(run, 'role'), agentId: text(run, 'agent_id') }
  yield* countSpent(context, { payer, day, tokens, reason: 'reported', taskId, runId })
}

/** Frees what is still reserved when a run ends and reports what it spent. */
export function* closeReservations(
  context: PlaneContext,
  { runId, taskId }: { readonly runId: number; readonly taskId: number },
): Command<void> {
  const rows = yield [
    "UPDATE reservations SET state = 'closed', settled_at = ? WHERE run_id = ? AND state = 'open' RETURNING *",
    [context.now(), runId],
  ]
  for (const row of inOrder(rows)) {
    const { payer, day, tokens } = reservationOf(row)
    yield ['UPDATE tasks SET tokens_reserved = tokens_reserved - ? WHERE id = ?', [tokens, taskId]]
    yield* changeDay({ day, payer, spent: 0, reserved: -tokens })
  }
}

/**
 * Adds the cost of a reservation to its run and task. `held` is what the reservation holds of the task's own budget. @returns the tokens that
 * the ledger does not have yet: less than `tokens` after a run that reported more than it had settled
 */
function* addSettled({ runId, taskId, tokens, held }: SettledCost): Command<number> {
  const run = yield* queryOne('UPDATE runs SET tokens_settled = tokens_settled + ? WHERE id = ? RETURNING tokens_settled, tokens_used', [
    tokens,
    runId,
  ])
  const added = run ? Math.max(0, int(run, 'tokens_settled') - int(run, 'tokens_used')) : tokens
  if (added > 0) yield ['UPDATE runs SET tokens_used = tokens_used + ? WHERE id = ?', [added, runId]]
  if (added > 0 || held > 0)
    yield ['UPDATE tasks SET tokens_used = tokens_used + ?, tokens_reserved = tokens_reserved - ? WHERE id = ?', [added, held, taskId]]
  return added
}

type SettledCost = { readonly runId: number; readonly taskId: number; readonly tokens: number; readonly held: number }

type BudgetQuery = { readonly role: string; readonly agentId: string | null; readonly taskId: number | null }

/** Returns the tokens that may still be reserved: the least that the budgets of all, of the role, of the agent and of the task leave; null without a limit. */
export function* remainingFor(context: PlaneContext, { role, agentId, taskId }: BudgetQuery): Command<number | null> {
  const settings = yield* readBudgetSettings()
  const left = yield* leastLeft(context, settings, yield* scopesOf({ role, agentId }, settings))
  const ofTask = taskId === null ? null : yield* remainingOfTask(taskId)
  return ofTask === null || left === null ? (ofTask ?? left) : Math.min(left, ofTask)
}

/** Returns the least that the limited budgets leave; null when none has a limit. */
export function* leastLeft({ now }: PlaneContext, settings: BudgetSettings, scopes: readonly Scope[]): Command<number | null> {
  const limited = scopes.flatMap(({ name, limit }) => (limit === null ? [] : [{ name, limit }]))
  if (limited.length === 0) return null
  const { day } = budgetDayOf(now(), settings.timezone)
  const used = yield* usedToday(
    day,
    limited.map(({ name }) => name),
  )
  const left = limited.map(({ name, limit }) => {
    const { spent, reserved } = used.get(name) ?? unused
    return Math.max(0, limit - spent - reserved)
  })
  return Math.min(...left)
}

function* remainingOfTask(taskId: number): Command<number | null> {
  const row = yield* queryOne('SELECT budget_tokens, tokens_used, tokens_reserved FROM tasks WHERE id = ?', [taskId])
  const limit = row ? intOrNull(row, 'budget_tokens') : null
  return row && limit !== null ? Math.max(0, limit - int(row, 'tokens_used') - int(row, 'tokens_reserved')) : null
}

/** Sorts by day, so that all commands lock the rows of several days in the same order. */
function inOrder(rows: readonly Row[]): readonly Row[] {
  return [...rows].sort((a, b) => text(a, 'day').localeCompare(text(b, 'day')) || int(a, 'id') - int(b, 'id'))
}

function reservationOf(row: Row) {
  return {
    payer: { role: text(row, 'role'), agentId: text(row, 'agent_id') },
    day: text(row, 'day'),
    taskId: int(row, 'task_id'),
    tokens: int(row, 'tokens'),
  }
}

/**
 * Counts the true cost, also when it exceeds the reservation or arrives after the run has ended. After a lost lease the whole reservation
 * counts already, so only the excess is added. @throws PlaneRefusal not_found for a reservation of another run; conflict when it was settled
 * with another number
 */
export function* settleTokens(
  context: PlaneContext,
  { caller, request }: { readonly caller: RunCaller; readonly request: SettleRequest },
): Command<Settled> {
  const [taskId, runId] = [numberOf(caller.taskId), numberOf(caller.runId)]
  const row = yield* ownReservation({ id: request.reservation_id, runId })
  if (text(row, 'state') === 'settled') assertSameNumber(row, request)
  else yield* settleRow(context, { row, request, runId })
  const role = text(row, 'role')
  return { tokens: request.tokens, budget_remaining: yield* remainingFor(context, { role, agentId: caller.id, taskId }) }
}

function* settleRow(
  context: PlaneContext,
  { row, request: { tokens, model }, runId }: { readonly row: Row; readonly request: SettleRequest; readonly runId: number },
): Command<void> {
  const { payer, day, taskId, tokens: reserved } = reservationOf(row)
  const state = text(row, 'state')
  const held = state === 'open' ? reserved : 0
  const counted = state === 'forfeited' ? reserved : 0
  yield [
    "UPDATE reservations SET state = 'settled', spent = ?, model = ?, settled_at = ? WHERE id = ?",
    [tokens, model, context.now(), int(row, 'id')],
  ]
  const added = yield* addSettled({ runId, taskId, tokens: Math.max(0, tokens - counted), held })
  yield* countSpent(context, { payer, day, tokens: added, freed: held, reason: 'settled', taskId, runId, model })
}

function* ownReservation({ id, runId }: { readonly id: string; readonly runId: number }): Command<Row> {
  const number = /^RSV-\d{1,15}$/.test(id) ? numberOf(id) : 0
  const row = yield* queryOne('SELECT * FROM reservations WHERE id = ? AND run_id = ?', [number, runId])
  if (row) return row
  throw new PlaneRefusal('not_found', `this run has no reservation "${id}"`)
}

/** Lets a repeated request get the first answer. */
function assertSameNumber(row: Row, { tokens }: SettleRequest): void {
  if (int(row, 'spent') === tokens) return
  throw new PlaneRefusal('conflict', `this reservation was settled with ${int(row, 'spent')} tokens; it cannot become ${tokens}`)
}

type SpendEntry = {
  readonly payer: Payer
  readonly day: string
  readonly tokens: number
  /** `settled`: a reservation with its true cost; `forfeited`: a reservation whose run was lost; `reported`: what an agent reports beyond both. */
  readonly reason: 'settled' | 'forfeited' | 'reported'
  readonly taskId?: number | null
  readonly runId?: number | null
  readonly model?: string
  /** The tokens that the reservation held until now. */
  readonly freed?: number
}

export function* countSpent(
  context: Pick<PlaneContext, 'now'>,
  { payer, day, tokens, reason, taskId = null, runId = null, model = '', freed = 0 }: SpendEntry,
): Command<void> {
  if (tokens !== 0 || freed !== 0) yield* changeDay({ day, payer, spent: tokens, reserved: -freed })
  if (tokens === 0) return
  yield [
    'INSERT INTO ledger (id, at, day, role, agent_id, task_id, run_id, tokens, reason, model) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
    [yield* nextId('ledger'), context.now(), day, payer.role, payer.agentId ?? '', taskId, runId, tokens, reason, model],
  ]
}

export const usualMostReported = 100_000_000

type TokenReport = {
  readonly caller: Caller
  readonly agentId: string
  readonly tokens: number
  /** A settlement may report as much as its reservation has, because a budget granted that. */
  readonly reservation?: string
}

/**
 * Refuses a number that would use up the day's budget of a whole fleet: records an event for the operator and counts nothing. The caller
 * checks before the command that counts. @throws PlaneRefusal bad_request
 */
export async function assertReportLimit(context: PlaneContext, report: TokenReport): Promise<void> {
  const most = context.options.mostTokensOfReport ?? usualMostReported
  if (report.tokens <= most || report.tokens <= (await grantedTo(context, report))) return
  await context.store.write(() => recordRefusedReport(context, report, most))
  const why = `no run can report more than ${most} tokens (CONTROLPLANE_REPORT_TOKENS), and this report says ${report.tokens}`
  throw new PlaneRefusal('bad_request', `${why}; nothing was counted: report what was spent, or have an operator raise the setting`, {
    most,
    reported: report.tokens,
  })
}

async function grantedTo({ store }: PlaneContext, { reservation }: TokenReport): Promise<number> {
  if (reservation === undefined) return 0
  return await store.read(() => queryNumber('SELECT tokens AS value FROM reservations WHERE id = ?', [numberOf(reservation)]))
}

const type = 'budget.report_refused'
/** An agent that keeps reporting wrong numbers makes one event in this time. */
const againMs = 600_000

function* recordRefusedReport(context: PlaneContext, { caller, agentId, tokens }: TokenReport, most: number): Command<void> {
  const since = context.now() - againMs
  const earlier = yield* queryOne('SELECT id FROM events WHERE type = ? AND at > ? AND agent_id = ? ORDER BY id DESC LIMIT 1', [
    type,
    since,
    agentId,
  ])
  if (earlier) return
  const run = caller.kind === 'run' ? { taskId: numberOf(caller.taskId), runId: numberOf(caller.runId), role: caller.role } : {}
  yield* recordEvent(context, { type, actor: signatureOf(caller), agentId, ...run, data: { reported: tokens, most } })
}
