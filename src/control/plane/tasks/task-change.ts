/** Locks one task, changes its row and says so: every change of a task goes through here. */

import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Command, Param, Row } from '../../contract/store-port.ts'
import type { Task } from '../../contract/task-shapes.ts'
import { idOf, numberOf, type PlaneContext } from '../context.ts'
import { recordEvent } from '../events/record-event.ts'
import { first, int, intOrNull, text, textOrNull } from '../row.ts'
import { moveLabels } from './task-labels.ts'
import { taskOf } from './task-row.ts'

/** @throws PlaneRefusal not_found */
export function* lockTask(context: PlaneContext, number: number): Command<Row> {
  const row = yield* first(`SELECT * FROM tasks WHERE id = ?${context.dialect.forUpdate}`, [number])
  if (!row) throw new PlaneRefusal('not_found', `there is no task ${idOf('TASK', number)}`)
  return row
}

/** @returns the row afterwards, and what else `returning` asks for. The columns come from our own code, never from a request. */
export function* changeTask(
  context: PlaneContext,
  number: number,
  columns: Readonly<Record<string, Param>>,
  returning = '*',
): Command<Row> {
  const names = Object.keys(columns)
  const row = yield* first(
    `UPDATE tasks SET ${names.map((name) => `${name} = ?, `).join('')}version = version + 1, updated_at = ? WHERE id = ? RETURNING ${returning}`,
    [...Object.values(columns), context.now(), number],
  )
  if (!row) throw new PlaneRefusal('not_found', `there is no task ${idOf('TASK', number)}`)
  if (names.some((name) => moves.has(name))) yield* moveLabels([row])
  return row
}

/** What decides where a task stands in the queue. */
const moves = new Set(['status', 'queue_at', 'role', 'agent_id'])

export type TaskHappening = {
  readonly type: string
  readonly actor: string
  readonly data?: Record<string, unknown>
  readonly agentId?: string
}

/** Records what happened to a task. The last run is named as long as the task has one. */
export function* recordTask(context: PlaneContext, row: Row, { type, actor, data, agentId }: TaskHappening): Command<void> {
  yield* recordEvent(context, {
    type,
    actor,
    taskId: int(row, 'id'),
    runId: intOrNull(row, 'run_id'),
    agentId: agentId ?? textOrNull(row, 'agent_id'),
    role: text(row, 'role'),
    data: { title: text(row, 'title'), status: text(row, 'status'), ...data },
  })
}

/** Wakes workers that wait for a task of this role. */
export function readyTopic(role: string): string {
  return `tasks:${role}`
}

/** Wakes them when the task may be claimed. */
export function* announceReady(context: PlaneContext, row: Row): Command<void> {
  if (row.status === 'pending') yield* context.store.announce(readyTopic(text(row, 'role')))
}

/** The task as it travels, with what it depends on and who has it. `agentId`: when the caller knows who has it. */
export function* fullTask(row: Row, agentId?: string): Command<Task> {
  const needs = yield ['SELECT needs FROM dependencies WHERE task_id = ? ORDER BY needs', [int(row, 'id')]]
  return taskOf(
    row,
    needs.map((need) => int(need, 'needs')),
    agentId ?? (yield* holderOf(row)),
  )
}

function* holderOf(row: Row): Command<string | null> {
  if (row.status !== 'running') return null
  const run = yield* first('SELECT agent_id FROM runs WHERE id = ?', [int(row, 'run_id')])
  return run ? text(run, 'agent_id') : null
}

export function* readTask(id: string): Command<Row> {
  const row = yield* first('SELECT * FROM tasks WHERE id = ?', [numberOf(id)])
  if (!row) throw new PlaneRefusal('not_found', `there is no task ${id}`)
  return row
}

const ended = new Set(['completed', 'failed', 'dead', 'cancelled'])

export function hasEnded(row: Row): boolean {
  return ended.has(text(row, 'status'))
}
