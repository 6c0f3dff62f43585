/** Prints tasks and runs as lines of a list and as a page, and events as lines. */

import type { ControlEvent } from '../../../../control/contract/activity-shapes.ts'
import type { ListedRun, Run } from '../../../../control/contract/run-shapes.ts'
import type { Effect, Task } from '../../../../control/contract/task-shapes.ts'
import { grouped, visibleLines } from '../../../../kit/text.ts'
import { oneLine, record, shortened, table } from './table.ts'
import { lengthText, moment, tokensText, when } from './time-text.ts'

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
