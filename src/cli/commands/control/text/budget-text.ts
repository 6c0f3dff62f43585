/** Prints the budget: what is spent, reserved and left today, for all, each role and each agent. */

import type { Budget } from '../../../../control/contract/fleet-shapes.ts'
import { count, grouped } from '../../../../kit/count.ts'
import { table } from './table.ts'
import { lengthText, tokensText } from './time-text.ts'

/** One sentence for the head of the status. */
export function budgetSentence(budget: Budget): string {
  const { daily_tokens: limit, spent_today: spent, reserved, hard_limit_exceeded: exceeded } = budget
  const whole = limit === null ? `${tokensText(spent)} spent today, no limit` : `${grouped(spent)} of ${tokensText(limit)} spent today`
  const held = reserved > 0 ? `, ${grouped(reserved)} reserved` : ''
  return `${whole}${held}${exceeded ? ', the limit is reached' : ''}`
}

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

/** `2 tasks wait for more budget`. */
export function waitingTasks({ blocked_tasks: number }: Pick<Budget, 'blocked_tasks'>): string {
  return `${count(number, 'task')} ${number === 1 ? 'waits' : 'wait'} for more budget`
}

function scopeRow(name: string, { limit, spent, reserved, remaining }: Budget['roles'][string]): string[] {
  return [name, limit === null ? '-' : grouped(limit), grouped(spent), grouped(reserved), remaining === null ? '-' : grouped(remaining)]
}

export function newDay({ next_day_at: next, timezone }: Budget, now: number): string {
  return `a new day begins in ${lengthText(Date.parse(next) - now)} (${timezone})`
}
