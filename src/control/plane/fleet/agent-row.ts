/** Reads agents as they travel: with what they run and what they spent today. */

import type { Agent } from '../../contract/fleet-shapes.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Command, Row } from '../../contract/store-port.ts'
import { currentDay } from '../budget/budget-settings.ts'
import { idOf, type PlaneContext } from '../context.ts'
import { first, flag, int, intOrNull, objectOrNull, text, textOrNull, time, timeOrNull } from '../row.ts'

/** @throws PlaneRefusal not_found */
export function* lockAgent({ dialect }: PlaneContext, id: string): Command<Row> {
  const row = yield* first(`SELECT * FROM agents WHERE id = ?${dialect.forUpdate}`, [id])
  if (!row) throw noAgent(id)
  return row
}

export function noAgent(id: string): PlaneRefusal {
  return new PlaneRefusal('not_found', `there is no agent "${id}"; an operator adds it with "control agent add"`)
}

/** In the order in which they were added. */
export function* readAgents(context: PlaneContext, id?: string): Command<readonly Agent[]> {
  const rows = id === undefined ? yield ['SELECT * FROM agents ORDER BY place'] : yield ['SELECT * FROM agents WHERE id = ?', [id]]
  const running = yield* runningTasks(context, id)
  const spent = yield* spentToday(context)
  return rows.map((row) => agentOf(row, { running: running.get(text(row, 'id')) ?? [], spent: spent.get(text(row, 'id')) ?? 0 }))
}

/** @throws PlaneRefusal not_found */
export function* readAgent(context: PlaneContext, id: string): Command<Agent> {
  const [agent] = yield* readAgents(context, id)
  if (!agent) throw noAgent(id)
  return agent
}

type Running = Agent['running']

function* runningTasks(context: PlaneContext, id: string | undefined): Command<ReadonlyMap<string, Running>> {
  const rows = yield [
    `SELECT runs.agent_id AS agent_id, runs.id AS run_id, tasks.id AS task_id, tasks.title AS title, tasks.available_at AS lease_until
      FROM runs JOIN tasks ON tasks.run_id = runs.id WHERE runs.state = 'running' AND tasks.status = 'running' AND tasks.available_at > ?
      ${id === undefined ? '' : 'AND runs.agent_id = ?'} ORDER BY runs.id`,
    id === undefined ? [context.now()] : [context.now(), id],
  ]
  return byAgent(rows)
}

function byAgent(rows: readonly Row[]): ReadonlyMap<string, Running> {
  const groups = Map.groupBy(rows, (row) => text(row, 'agent_id'))
  return new Map([...groups].map(([agentId, of]) => [agentId, of.map(runningOf)]))
}

function runningOf(row: Row): Running[number] {
  return {
    task_id: idOf('TASK', int(row, 'task_id')),
    run_id: idOf('RUN', int(row, 'run_id')),
    title: text(row, 'title'),
    lease_until: time(row, 'lease_until'),
  }
}

function* spentToday(context: PlaneContext): Command<ReadonlyMap<string, number>> {
  const { day } = yield* currentDay(context)
  const rows = yield ["SELECT scope, spent FROM budget_days WHERE day = ? AND scope LIKE 'agent:%'", [day]]
  return new Map(rows.map((row) => [text(row, 'scope').slice('agent:'.length), int(row, 'spent')]))
}

function agentOf(row: Row, { running, spent }: { readonly running: Running; readonly spent: number }): Agent {
  return {
    id: text(row, 'id'),
    role: text(row, 'role'),
    heartbeat_enabled: flag(row, 'heartbeat_enabled'),
    description: text(row, 'description'),
    daily_tokens: intOrNull(row, 'daily_tokens'),
    paused: flag(row, 'paused'),
    paused_reason: textOrNull(row, 'paused_reason'),
    wakes: int(row, 'wakes'),
    last_seen_at: timeOrNull(row, 'last_seen_at'),
    worker: objectOrNull(row, 'worker'),
    running,
    spent_today: spent,
    created_at: time(row, 'created_at'),
  }
}
