/** Assembles the control plane over one store. */

import type { Plane, PlaneOptions } from '../contract/plane.ts'
import { createApprovalPlane, expireApprovals } from './approvals.ts'
import { createTaskPlane } from './claims/task-plane.ts'
import { createContext, type PlaneContext } from './context.ts'
import { createEventPlane } from './events/event-plane.ts'
import { eventsLast } from './events/record-event.ts'
import { createAccessPlane } from './fleet/access-plane.ts'
import { createFleetPlane } from './fleet/fleet-plane.ts'
import { readFigures } from './runs/figures.ts'
import { noteHostd } from './runs/note-hostd.ts'
import { pruneOld } from './runs/prune.ts'
import { createRunPlane } from './runs/run-plane.ts'
import { createSchedulePlane, fireSchedules } from './schedules.ts'
import { createActivity } from './seed/activity.ts'
import { createSeedPlane } from './seed/seed-plane.ts'
import { createBudgetPlane, rolloverBudget } from './spending.ts'

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

/** In the order in which they help each other: a lease that expires may end a question, a new day may wake a task. */
function chores(context: PlaneContext): Chores {
  return {
    approvals: () => expireApprovals(context),
    budget: () => rolloverBudget(context),
    schedules: () => fireSchedules(context),
    old: () => pruneOld(context),
  }
}

/** One that fails does not hold the others up. @throws the first error, after all were tried */
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
