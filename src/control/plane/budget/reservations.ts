/** Closes the accounts of runs: what a lost run had reserved, what a finished run says it spent, and how much may still be spent. */

import type { BudgetSettings } from '../../contract/fleet-shapes.ts'
import type { Command, Row } from '../../contract/store-port.ts'
import type { PlaneContext } from '../context.ts'
import { first, int, intOrNull, text } from '../row.ts'
import { budgetDayOf } from './budget-day.ts'
import { currentDay, readBudgetSettings } from './budget-settings.ts'
import { countSpent } from './ledger.ts'
import { changeDay, type Payer, type Scope, scopesOf, unused, usedToday } from './scopes.ts'

/**
 * Counts all that a lost run had reserved as spent, because nobody can say how much of it was. The caller holds the lock of the run's task.
 */
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
 * Counts the total of a run: the ledger adds what exceeds the tokens that it has of this run already, and changes `tokens_used` of the run and
 * of its task. A reservation that is settled later counts only where the sum of all reservations exceeds the total. Nothing is counted twice,
 * and nothing is lost when a report comes late. `run`: its columns id, task_id, agent_id, role and tokens_used, read or changed in this command.
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

/** For a run that ends and says what it spent: what is still reserved becomes free. */
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
 * Adds the cost of a reservation to its run and task. `held`: what the reservation had taken of the task's own budget until now.
 * @returns the tokens that the ledger does not have yet: less than `tokens` after a run that reported more than it had settled
 */
export function* addSettled({ runId, taskId, tokens, held }: Settling): Command<number> {
  const run = yield* first('UPDATE runs SET tokens_settled = tokens_settled + ? WHERE id = ? RETURNING tokens_settled, tokens_used', [
    tokens,
    runId,
  ])
  const added = run ? Math.max(0, int(run, 'tokens_settled') - int(run, 'tokens_used')) : tokens
  if (added > 0) yield ['UPDATE runs SET tokens_used = tokens_used + ? WHERE id = ?', [added, runId]]
  if (added > 0 || held > 0)
    yield ['UPDATE tasks SET tokens_used = tokens_used + ?, tokens_reserved = tokens_reserved - ? WHERE id = ?', [added, held, taskId]]
  return added
}

type Settling = { readonly runId: number; readonly taskId: number; readonly tokens: number; readonly held: number }

export type Charged = { readonly role: string; readonly agentId: string | null; readonly taskId: number | null }

/** The tokens that may still be reserved: the least of the budgets of all, of the role, of the agent and of the task; null: no limit. */
export function* remainingFor(context: PlaneContext, { role, agentId, taskId }: Charged): Command<number | null> {
  const settings = yield* readBudgetSettings()
  const left = yield* leastLeft(context, settings, yield* scopesOf({ role, agentId }, settings))
  const ofTask = taskId === null ? null : yield* remainingOfTask(taskId)
  return ofTask === null || left === null ? (ofTask ?? left) : Math.min(left, ofTask)
}

/** Of the budgets with a limit; null: none has one. */
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
  const row = yield* first('SELECT budget_tokens, tokens_used, tokens_reserved FROM tasks WHERE id = ?', [taskId])
  const limit = row ? intOrNull(row, 'budget_tokens') : null
  return row && limit !== null ? Math.max(0, limit - int(row, 'tokens_used') - int(row, 'tokens_reserved')) : null
}

/** By day, so that all commands lock the rows of several days in one order. */
function inOrder(rows: readonly Row[]): readonly Row[] {
  return [...rows].sort((a, b) => text(a, 'day').localeCompare(text(b, 'day')) || int(a, 'id') - int(b, 'id'))
}

export type OpenReservation = { readonly payer: Payer; readonly day: string; readonly taskId: number; readonly tokens: number }

export function reservationOf(row: Row): OpenReservation {
  return {
    payer: { role: text(row, 'role'), agentId: text(row, 'agent_id') },
    day: text(row, 'day'),
    taskId: int(row, 'task_id'),
    tokens: int(row, 'tokens'),
  }
}
