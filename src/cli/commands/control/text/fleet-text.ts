/** Prints agents, their keys, operator tokens, schedules and the budget as lines. */

import type { Agent, AgentKey, Budget, OperatorToken } from '../../../../control/contract/fleet-shapes.ts'
import type { ControlSchedule } from '../../../../control/contract/task-shapes.ts'
import { count, grouped } from '../../../../kit/text.ts'
import { table } from './table.ts'
import { lengthText, tokensText, when } from './time-text.ts'

export function agentLines(agents: readonly Agent[], now: number, width?: number): string[] {
  const rows = agents.map((agent) => [
    agent.id,
    agent.role,
    agentState(agent),
    grouped(agent.spent_today),
    when(agent.last_seen_at, now),
    doing(agent),
  ])
  return table(rows, {
    heads: ['agent', 'role', 'state', 'tokens today', 'seen', 'works on'],
    right: [3],
    keep: [0, 2],
    drop: [4, 3, 1],
    width,
  })
}

export function agentState({ paused, heartbeat_enabled: enabled, running }: Agent): string {
  if (paused) return 'paused'
  if (running.length > 0) return 'working'
  return enabled ? 'idle' : 'no heartbeat'
}

function doing({ running, paused, paused_reason: reason }: Agent): string {
  const [first, ...others] = running
  if (first === undefined) return paused && reason ? reason : '-'
  return `${first.task_id}${others.length > 0 ? ` and ${others.length} more` : ''} ${first.title}`
}

export function keyLines(keys: readonly AgentKey[], now: number, width?: number): string[] {
  const rows = keys.map(({ key_id: id, agent_id: agent, created_at: made, last_used_at: used, revoked_at: revoked }) => {
    return [id, agent, when(made, now), when(used, now), revoked === null ? 'in force' : `revoked ${when(revoked, now)}`]
  })
  return table(rows, { heads: ['key', 'agent', 'made', 'used', 'state'], keep: [0, 1, 4], drop: [2, 3], width })
}

export function operatorLines(operators: readonly OperatorToken[], now: number, width?: number): string[] {
  const rows = operators.map(({ id, name, created_at: made, revoked_at: revoked }) => {
    return [id, name, when(made, now), revoked === null ? 'in force' : `revoked ${when(revoked, now)}`]
  })
  return table(rows, { heads: ['operator', 'name', 'made', 'state'], keep: [0, 3], drop: [2], width })
}

export function scheduleLines(schedules: readonly ControlSchedule[], now: number, width?: number): string[] {
  const rows = schedules.map((each) => {
    const due = each.enabled ? when(each.next_at, now) : 'disabled'
    const rhythm = each.cron === undefined ? `every ${each.every}` : `${each.cron} (${each.timezone})`
    return [each.schedule_id, each.name, rhythm, due, each.last_task_id ?? '-', `${each.task.role}: ${each.task.title}`]
  })
  return table(rows, { heads: ['id', 'name', 'when', 'next', 'last', 'task'], keep: [0, 3], drop: [4, 2], width })
}

/** Returns one sentence for the head of the status. */
export function budgetSentence(budget: Budget): string {
  const { daily_tokens: limit, spent_today: spent, reserved, hard_limit_exceeded: exceeded } = budget
  const whole = limit === null ? `${tokensText(spent)} spent today, no limit` : `${grouped(spent)} of ${tokensText(limit)} spent today`
  const held = reserved > 0 ? `, ${grouped(reserved)} reserved` : ''
  return `${whole}${held}${exceeded ? ', the limit is reached' : ''}`
}

/** Shows what is spent, reserved and left today: for all, for each role and for each agent. */
export function budgetText(budget: Budget, now: number, width?: number): string[] {
  const whole = { limit: budget.daily_tokens, spent: budget.spent_today, reserved: budget.reserved, remaining: budget.remaining }
  const rows = [
    scopeRow('all', whole),
    ...Object.entries(budget.roles).map(([name, scope]) => scopeRow(`role ${name}`, scope)),
    ...Object.entries(budget.agents).map(([name, scope]) => scopeRow(`agent ${name}`, scope)),
  ]
  return [
    `${budget.day}; ${newDay(budget, now)}`,
    ...table(rows, { heads: ['', 'limit', 'spent', 'reserved', 'left'], right: [1, 2, 3, 4], keep: [], drop: [3, 1], width }),
    `forecast for today: ${tokensText(budget.forecast_today)}${budget.hard_limit_exceeded ? '; the limit is reached' : ''}`,
    ...(budget.blocked_tasks > 0 ? [`${waitingTasks(budget)}: braidclaw control task list --status budget_blocked`] : []),
  ]
}

/** Returns `2 tasks wait for more budget`. */
export function waitingTasks({ blocked_tasks: number }: Pick<Budget, 'blocked_tasks'>): string {
  return `${count(number, 'task')} ${number === 1 ? 'waits' : 'wait'} for more budget`
}

function scopeRow(name: string, { limit, spent, reserved, remaining }: Budget['roles'][string]): string[] {
  return [name, limit === null ? '-' : grouped(limit), grouped(spent), grouped(reserved), remaining === null ? '-' : grouped(remaining)]
}

export function newDay({ next_day_at: next, timezone }: Budget, now: number): string {
  return `a new day begins in ${lengthText(Date.parse(next) - now)} (${timezone})`
}
