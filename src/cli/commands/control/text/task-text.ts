/** Prints tasks as lines of a list and as a page. */

import type { Effect, Task } from '../../../../control/contract/task-shapes.ts'
import { grouped } from '../../../../kit/count.ts'
import { visibleLines } from '../../../../kit/text.ts'
import { oneLine, record, table } from './table.ts'
import { moment, tokensText, when } from './time-text.ts'

/** `blocked(in_doubt)` where the status alone does not say why. */
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
