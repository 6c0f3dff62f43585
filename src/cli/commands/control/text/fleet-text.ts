/** Prints agents, their keys, operator tokens and heartbeat schedules as lines. */

import type { Agent, AgentKey, OperatorToken } from '../../../../control/contract/fleet-shapes.ts'
import type { ControlSchedule } from '../../../../control/contract/task-shapes.ts'
import { grouped } from '../../../../kit/count.ts'
import { table } from './table.ts'
import { when } from './time-text.ts'

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
