/** Prints what a control plane has as lines of a list and as pages: tasks, runs, events, agents, keys, schedules, the budget, times. */

import type { ControlEvent } from '../../../../control/contract/activity-shapes.ts'
import type { Agent, AgentKey, Budget, OperatorToken } from '../../../../control/contract/fleet-shapes.ts'
import type { ListedRun, Run } from '../../../../control/contract/run-shapes.ts'
import type { ControlSchedule, Effect, Task } from '../../../../control/contract/task-shapes.ts'
import { timeText } from '../../../../host/schedules/schedule-view.ts'
import { count, grouped, visibleLines } from '../../../../kit/text.ts'
import { oneLine, record, shortened, table } from './table.ts'

/** Returns the status, with the reason where it has one: `blocked(in_doubt)`. */
export function statusText({ status, blocked_reason: reason, cancel_requested: cancels }: Task): string {
  if (status === 'running' && cancels) return 'cancelling'
  return reason === null ? status : `${status}(${reason})`
}

export function taskLines(tasks: readonly Task[], now: number, width?: number): string[] {
  return table(
    tasks.map((task) => [
      task.task_id,
      statusText(task),
      task.priority,
      task.assigned_to,
      when(task.updated_at, now).replace(' ago', ''),
      task.title,
    ]),
    { heads: ['task', 'status', 'priority', 'for', 'since', 'title'], keep: [0, 1], drop: [4, 2, 3], width },
  )
}

export function taskText(task: Task, now: number): string {
  const { lease_until: lease, budget_tokens: limit, depends_on: needs, labels } = task
  return record([
    ['task', `${task.task_id}  (version ${task.version})`],
    ['title', oneLine(task.title)],
    ['status', statusText(task)],
    ['role', task.agent_id === null ? task.role : `${task.role}, only agent ${task.agent_id}`],
    ['priority', task.priority],
    ['labels', labels.join(', ')],
    ['needs', needs.join(', ')],
    ['attempt', `${task.attempt} of ${task.max_attempts}`],
    ['run', task.run_id === null ? undefined : `${task.run_id}${lease === null ? '' : `, lease until ${moment(lease, now)}`}`],
    ['tokens', `${grouped(task.tokens_used)}${limit === null ? '' : ` of ${tokensText(limit)}`}`],
    ['check', task.check ? oneLine(task.check) : undefined],
    ['not before', waitsForTime(task, now) ? moment(task.available_at, now) : undefined],
    ['parent', task.parent_task_id],
    ['created', `${moment(task.created_at, now)} by ${oneLine(task.created_by)}`],
    ['changed', moment(task.updated_at, now)],
    ['ended', task.ended_at === null ? undefined : moment(task.ended_at, now)],
    ['error', task.error === null ? undefined : lines(task.error)],
    ['result', task.result === null ? undefined : lines(JSON.stringify(task.result, undefined, 2))],
    ['context', Object.keys(task.context).length === 0 ? undefined : lines(JSON.stringify(task.context, undefined, 2))],
    ['description', lines(task.description)],
  ])
}

function waitsForTime({ status, available_at: available }: Task, now: number): boolean {
  return (status === 'pending' || status === 'blocked') && Date.parse(available) > now
}

export function effectLines(effects: readonly Effect[], width?: number): string[] {
  const rows = effects.map(({ key, state, run_id: run, description }) => [key, state, run, description])
  return rows.length === 0 ? [] : table(rows, { heads: ['effect', 'state', 'run', 'description'], keep: [1, 2], width })
}

function lines(text: string): string {
  return visibleLines(text).trimEnd()
}

export function runLines(runs: readonly ListedRun[], now: number, width?: number): string[] {
  const rows = runs.map((run) => {
    return [run.run_id, run.state, run.agent_id, took(run, now), grouped(run.tokens_used), run.task_id, run.error ?? run.task_title]
  })
  const heads = ['run', 'state', 'agent', 'took', 'tokens', 'task', 'title or error']
  return table(rows, { heads, right: [3, 4], keep: [0, 1, 5], drop: [4, 3, 2], width })
}

export function runText(run: Run, now: number): string {
  const { artifacts, manifest, log_bytes: bytes, log_truncated: cut } = run
  return record([
    ['run', `${run.run_id}, attempt ${run.attempt}`],
    ['task', `${run.task_id}  ${oneLine(run.task_title)}`],
    ['agent', `${run.agent_id} (${run.role})`],
    ['state', run.state],
    ['began', moment(run.began_at, now)],
    ['ended', run.ended_at === null ? undefined : `${moment(run.ended_at, now)}, after ${took(run, now)}`],
    ['last beat', run.ended_at === null ? when(run.last_beat_at, now) : undefined],
    ['tokens', grouped(run.tokens_used)],
    ['skill', run.skill === null ? undefined : oneLine(run.skill)],
    ['changes', run.changes],
    ['error', run.error === null ? undefined : visibleLines(run.error)],
    ['log', `${grouped(bytes)} bytes${cut ? ', cut at the limit' : ''}${bytes > 0 ? `: braidclaw control run log ${run.run_id}` : ''}`],
    ['manifest', manifest === null ? 'none' : `delivered: braidclaw control verify ${run.run_id}`],
    ['artifacts', artifacts.map(({ name, bytes, digest }) => `${oneLine(name)}  ${grouped(bytes)} bytes  ${digest}`).join('\n')],
  ])
}

function took({ began_at: began, ended_at: ended }: ListedRun, now: number): string {
  const ms = (ended === null ? now : Date.parse(ended)) - Date.parse(began)
  return ms < 10_000 ? `${(Math.max(0, ms) / 1_000).toFixed(1)}s` : lengthText(ms)
}

/** A terminal with so many columns shows a line of usual length. */
const narrow = 60

/**
 * `2026-11-23T18:00:00.000Z  12  task.completed  TASK-001  agent sysadmin  {…}`: one line an event, also for grep. `width`: that of a
 * terminal, where a longer line is cut; a narrow one has no room for the day.
 */
export function eventLine(event: ControlEvent, width?: number): string {
  const { at, id, type, task_id: task, run_id: run, agent_id: agent, actor } = event
  // The actor is shown already.
  const named = agent !== null && !` ${actor}`.endsWith(` ${agent}`) ? agent : null
  const about = [task, run, named].filter((each) => each !== null).join(' ')
  const data = Object.keys(event.data).length === 0 ? '' : shortened(oneLine(JSON.stringify(event.data)), 160)
  const time = width === undefined || width >= narrow ? at : at.slice(11, 19)
  const line = [time, String(id), type, about, oneLine(actor), data].filter((text) => text !== '').join('  ')
  return width === undefined ? line : shortened(line, width)
}

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

const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const

/** Returns `45s`, `3m`, `2h 10m`, `5d`; `0s` for less than a second. */
export function lengthText(ms: number): string {
  const at = units.findIndex(([, size]) => ms >= size)
  const [unit, size] = units[at] ?? (['s', 1_000] as const)
  const whole = Math.max(0, Math.floor(ms / size))
  const [lesser, lesserSize] = units[at + 1] ?? (['s', 1_000] as const)
  const rest = unit === 'h' ? Math.floor((ms % size) / lesserSize) : 0
  return `${whole}${unit}${rest > 0 ? ` ${rest}${lesser}` : ''}`
}

/** Returns `3m ago`, or `in 2h` for a future time; `never` without a time. */
export function when(iso: string | null, now: number): string {
  if (iso === null) return 'never'
  const off = Date.parse(iso) - now
  return off > 999 ? `in ${lengthText(off)}` : `${lengthText(-off)} ago`
}

/** Returns `Tue 2026-11-24 02:00 Europe/Berlin (in 1h)`, in the time zone of the reader; programs use --json. */
export function moment(iso: string, now: number, zone = Intl.DateTimeFormat().resolvedOptions().timeZone): string {
  return `${timeText(iso, zone)} (${when(iso, now)})`
}

/** Returns `1,200 tokens`; `no limit` without a number. */
export function tokensText(tokens: number | null): string {
  return tokens === null ? 'no limit' : `${grouped(tokens)} token${tokens === 1 ? '' : 's'}`
}
