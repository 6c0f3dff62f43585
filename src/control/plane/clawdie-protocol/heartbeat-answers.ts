/** Answers the three questions of a heartbeat of the Clawdie protocol ("the seed"): am I active and what may I spend, what should I do, what was approved. */

import type { SeedApprovals, SeedState, SeedTask } from '../../contract/activity-shapes.ts'
import { assertSelf, type Caller } from '../../contract/caller.ts'
import type { SeedPlane } from '../../contract/plane.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Command, Param, Row } from '../../contract/store-port.ts'
import { budgetDayOf, readBudgetSettings, type Used, unused, usedToday } from '../budget/limits.ts'
import { flag, idOf, idOrNull, int, intOrNull, numberOf, object, type PlaneContext, text, textOrNull } from '../command.ts'
import { priorityOf } from '../tasks/task-change.ts'

/** The protocol has no pages, so it gets the first rows in the order of the queue. */
const mostRows = 200

export function createSeedPlane(context: PlaneContext): SeedPlane {
  const { store } = context
  return {
    state: async () => await store.read(() => readState(context)),
    async tasks(caller, role) {
      const ownRole = roleOf(caller, role)
      return { tasks: await store.read(() => readTasks(context, { caller, role: ownRole })) }
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

/** Returns the role to read: an agent reads the queue of its own role. @throws PlaneRefusal forbidden */
function roleOf(caller: Caller, role: string | undefined): string | undefined {
  if (caller.kind === 'operator' || caller.kind === 'seed') return role
  if (role === undefined || role === caller.role) return caller.role
  throw new PlaneRefusal('forbidden', `agent ${caller.id} has role ${caller.role} and does not read the tasks of role ${role}`)
}

/**
 * Returns only tasks that may start now: a client of this protocol works on everything that it receives, so it must not receive a task that
 * another worker does.
 */
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

/** Returns the task of a run first, when the run asks for its tasks. */
function* ownTask(caller: Caller): Command<readonly SeedTask[]> {
  if (caller.kind !== 'run') return []
  const rows = yield [
    "SELECT * FROM tasks WHERE id = ? AND run_id = ? AND status = 'running'",
    [numberOf(caller.taskId), numberOf(caller.runId)],
  ]
  return rows.map(seedTask)
}

/** Returns pending approvals, and approved ones that may still be used. */
function* readApprovals(context: PlaneContext, agentId: string | undefined): Command<SeedApprovals> {
  const [own, params]: [string, Param[]] = agentId === undefined ? ['', []] : ['AND agent_id = ?', [agentId]]
  const inState = `SELECT * FROM approvals WHERE state = ? AND expires_at > ? ${own} ORDER BY id LIMIT ${mostRows}`
  const now = context.now()
  const pending = yield [inState, ['pending', now, ...params]]
  const approved = yield [inState, ['approved', now, ...params]]
  return { pending: pending.map(pendingApproval), approved: approved.map(approvedApproval) }
}

/** 2026-04-07T10:30:00Z */
function seedTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`
}

/** Reports a paused agent as one whose heartbeat is off: that field answers "am I active?". */
function seedAgent(row: Row): SeedState['agents'][number] {
  return { id: text(row, 'id'), role: text(row, 'role'), heartbeat_enabled: flag(row, 'heartbeat_enabled') && !flag(row, 'paused') }
}

/** The protocol has no budget without a limit, so it gets the highest limit that can be set. */
const noLimit = 1_000_000_000_000

function seedBudget(
  { daily_tokens, allocation }: { readonly daily_tokens: number | null; readonly allocation: Record<string, number> },
  { spent, reserved }: Used,
): SeedState['budget'] {
  const limit = daily_tokens ?? noLimit
  return {
    daily_tokens: limit,
    spent_today: spent,
    remaining: Math.max(0, limit - spent - reserved),
    hard_limit_exceeded: spent >= limit,
    allocation,
  }
}

function seedTask(row: Row): SeedTask {
  return {
    task_id: idOf('TASK', int(row, 'id')),
    title: text(row, 'title'),
    description: text(row, 'description'),
    assigned_to: textOrNull(row, 'agent_id') ?? text(row, 'role'),
    priority: priorityOf(row),
    status: text(row, 'status'),
    created_at: seedTime(int(row, 'created_at')),
    context: object(row, 'context'),
  }
}

function pendingApproval(row: Row): SeedApprovals['pending'][number] {
  return {
    approval_id: idOf('APPR', int(row, 'id')),
    task_id: idOrNull('TASK', intOrNull(row, 'task_id')),
    operation: text(row, 'operation'),
    estimated_tokens: int(row, 'estimated_tokens'),
    operator_approved: false,
  }
}

function approvedApproval(row: Row): SeedApprovals['approved'][number] {
  return {
    approval_id: idOf('APPR', int(row, 'id')),
    operation: text(row, 'operation'),
    operator_approved: true,
    approved_at: seedTime(int(row, 'decided_at')),
  }
}
