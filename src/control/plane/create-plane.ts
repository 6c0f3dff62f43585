/** Assembles the control plane over one store. */

import type { Plane, PlaneOptions } from '../contract/plane.ts'
import type { Command } from '../contract/store-port.ts'
import { createAccessPlane } from './access-plane.ts'
import { createApprovalPlane, expireApprovals } from './approvals.ts'
import { currentDay, unused, usedToday } from './budget/limits.ts'
import { createActivity } from './clawdie-protocol/activity-posts.ts'
import { createSeedPlane } from './clawdie-protocol/heartbeat-answers.ts'
import { createContext, int, type PlaneContext, queryNumber, text } from './command.ts'
import { createEventPlane, eventsLast } from './events.ts'
import { createFleetPlane } from './fleet-plane.ts'
import { pruneOld } from './prune.ts'
import { createRunPlane, noteHostd } from './runs.ts'
import { createSchedulePlane, fireSchedules } from './schedules.ts'
import { createBudgetPlane, rolloverBudget } from './spending.ts'
import { createTaskPlane } from './tasks/task-plane.ts'

export function createPlane(options: PlaneOptions): Plane {
  const context = createContext({ ...options, store: eventsLast(options.store) })
  const { tick, ...tasks } = createTaskPlane(context)
  return {
    tasks,
    approvals: createApprovalPlane(context),
    fleet: createFleetPlane(context),
    access: createAccessPlane(context),
    budget: createBudgetPlane(context),
    runs: createRunPlane(context),
    events: createEventPlane(context),
    schedules: createSchedulePlane(context),
    seed: createSeedPlane(context),
    activity: createActivity(context),
    noteHostd: (caller, call) => noteHostd(context, caller, call),
    figures: () => readFigures(context),
    tick: () => doAll(context, { tasks: tick, ...chores(context) }),
  }
}

type Chores = Readonly<Record<string, () => Promise<unknown>>>

/** Runs in the order in which the chores help each other: an expired lease may end a question, a new day may wake a task. */
function chores(context: PlaneContext): Chores {
  return {
    approvals: () => expireApprovals(context),
    budget: () => rolloverBudget(context),
    schedules: () => fireSchedules(context),
    old: () => pruneOld(context),
  }
}

/** Runs all chores, also after one failed. @throws the first error at the end */
async function doAll({ options }: PlaneContext, all: Chores): Promise<void> {
  const errors: unknown[] = []
  for (const [name, chore] of Object.entries(all)) {
    try {
      await chore()
    } catch (error) {
      options.log('warn', 'a part of the tick failed; the next tick tries it again', { part: name, error: String(error) })
      errors.push(error)
    }
  }
  if (errors.length > 0) throw errors[0]
}

/** Counts what /metrics shows. */
export async function readFigures(context: PlaneContext): Promise<Readonly<Record<string, number>>> {
  return await context.store.read(() => figures(context))
}

function* figures(context: PlaneContext): Command<Readonly<Record<string, number>>> {
  const { day } = yield* currentDay(context)
  const { spent, reserved } = (yield* usedToday(day, ['*'])).get('*') ?? unused
  return {
    ...(yield* countsBy('tasks', 'status')),
    ...(yield* countsBy('runs', 'state')),
    ...(yield* countsBy('approvals', 'state')),
    tokens_spent_today: spent,
    tokens_reserved: reserved,
    agents: yield* queryNumber('SELECT COUNT(*) AS value FROM agents'),
    agents_paused: yield* queryNumber('SELECT COUNT(*) AS value FROM agents WHERE paused = 1'),
    events: yield* queryNumber('SELECT COALESCE(MAX(id), 0) AS value FROM events'),
  }
}

/** Counts rows by a column, for example `tasks_pending: 3`. */
function* countsBy(table: 'tasks' | 'runs' | 'approvals', column: 'status' | 'state'): Command<Record<string, number>> {
  const rows = yield [`SELECT ${column} AS name, COUNT(*) AS value FROM ${table} GROUP BY ${column} ORDER BY ${column}`]
  return Object.fromEntries(rows.map((row) => [`${table}_${text(row, 'name')}`, int(row, 'value')]))
}
