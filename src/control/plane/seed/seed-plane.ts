/** Answers the three questions of the seed's heartbeat: am I active and what may I spend, what is there to do, what was approved. */

import type { SeedApprovals, SeedState, SeedTask } from '../../contract/activity-shapes.ts'
import type { Caller } from '../../contract/caller.ts'
import type { SeedPlane } from '../../contract/plane.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import { assertSelf } from '../../contract/rights.ts'
import type { Command, Param } from '../../contract/store-port.ts'
import { budgetDayOf } from '../budget/budget-day.ts'
import { readBudgetSettings } from '../budget/budget-settings.ts'
import { unused, usedToday } from '../budget/scopes.ts'
import { numberOf, type PlaneContext } from '../context.ts'
import { approvedApproval, pendingApproval, seedAgent, seedBudget, seedTask } from './seed-form.ts'

/** The seed has no pages: the first so many, in the order of the queue. */
const mostRows = 200

export function createSeedPlane(context: PlaneContext): SeedPlane {
  const { store } = context
  return {
    state: async () => await store.read(() => readState(context)),
    async tasks(caller, role) {
      const wanted = roleOf(caller, role)
      return { tasks: await store.read(() => readTasks(context, { caller, role: wanted })) }
    },
    async approvals(caller, agentId) {
      if (agentId !== undefined && caller.kind !== 'seed') assertSelf(caller, agentId, 'read its approvals')
      const own = caller.kind === 'agent' || caller.kind === 'run' ? caller.id : agentId
      return await store.read(() => readApprovals(context, own))
    },
  }
}

function* readState(context: PlaneContext): Command<SeedState> {
  const agents = yield ['SELECT id, role, heartbeat_enabled, paused FROM agents ORDER BY place']
  const settings = yield* readBudgetSettings()
  const { day } = budgetDayOf(context.now(), settings.timezone)
  return { agents: agents.map(seedAgent), budget: seedBudget(settings, (yield* usedToday(day, ['*'])).get('*') ?? unused) }
}

/** An agent reads the queue of its own role. @throws PlaneRefusal forbidden */
function roleOf(caller: Caller, role: string | undefined): string | undefined {
  if (caller.kind === 'operator' || caller.kind === 'seed') return role
  if (role === undefined || role === caller.role) return caller.role
  throw new PlaneRefusal('forbidden', `agent ${caller.id} has role ${caller.role} and does not read the tasks of role ${role}`)
}

/** Only what may be done now: a client of the seed works on everything that it is given, so it must not get what somebody else is doing. */
function* readTasks(
  context: PlaneContext,
  { caller, role }: { readonly caller: Caller; readonly role: string | undefined },
): Command<readonly SeedTask[]> {
  const agentId = caller.kind === 'agent' || caller.kind === 'run' ? caller.id : undefined
  const params: Param[] = [context.now(), ...(role === undefined ? [] : [role]), ...(agentId === undefined ? [] : [agentId])]
  const rows = yield [
    `SELECT * FROM tasks WHERE status = 'pending' AND available_at <= ? ${role === undefined ? '' : 'AND role = ?'}
      ${agentId === undefined ? '' : 'AND (agent_id IS NULL OR agent_id = ?)'} ORDER BY queue_at, id LIMIT ${mostRows}`,
    params,
  ]
  return [...(yield* ownTask(caller)), ...rows.map(seedTask)]
}

/** A run that asks what is assigned to it finds its own task first. */
function* ownTask(caller: Caller): Command<readonly SeedTask[]> {
  if (caller.kind !== 'run') return []
  const rows = yield [
    "SELECT * FROM tasks WHERE id = ? AND run_id = ? AND status = 'running'",
    [numberOf(caller.taskId), numberOf(caller.runId)],
  ]
  return rows.map(seedTask)
}

/** Approved ones as long as they may be used. */
function* readApprovals(context: PlaneContext, agentId: string | undefined): Command<SeedApprovals> {
  const [own, params]: [string, Param[]] = agentId === undefined ? ['', []] : ['AND agent_id = ?', [agentId]]
  const inState = `SELECT * FROM approvals WHERE state = ? AND expires_at > ? ${own} ORDER BY id LIMIT ${mostRows}`
  const now = context.now()
  const pending = yield [inState, ['pending', now, ...params]]
  const approved = yield [inState, ['approved', now, ...params]]
  return { pending: pending.map(pendingApproval), approved: approved.map(approvedApproval) }
}
