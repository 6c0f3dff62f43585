/** Creates tasks: each with its labels, what it depends on and its place in the queue. */

import { type Caller, signatureOf } from '../../contract/caller.ts'
import type { Command, Param, Row } from '../../contract/store-port.ts'
import type { Task, TaskDraft } from '../../contract/task-shapes.ts'
import { numberOf, type PlaneContext, take, taken } from '../context.ts'
import { first, int } from '../row.ts'
import { keepNeeds, type Needs, readNeeds } from './dependencies.ts'
import { announceReady, readTask, recordTask } from './task-change.ts'
import { keepLabels } from './task-labels.ts'
import { queueAt, rankOf, taskOf } from './task-row.ts'

/** `actor`: who is recorded as its creator, when that is not the caller. @throws PlaneRefusal bad_request for an unknown parent or need */
export function* createTask(context: PlaneContext, caller: Caller, draft: TaskDraft, actor = signatureOf(caller)): Command<Task> {
  if (draft.parent_task_id !== undefined) yield* readTask(draft.parent_task_id)
  const needs = yield* readNeeds(context, draft.depends_on)
  const row = yield* insertTask(columnsOf(context, { draft, needs, actor }))
  yield* keepLabels(row, draft.labels)
  yield* keepNeeds(int(row, 'id'), needs.numbers)
  yield* recordTask(context, row, { type: 'task.created', actor })
  yield* announceReady(context, row)
  return taskOf(row, needs.numbers)
}

type NewTask = { readonly draft: TaskDraft; readonly needs: Needs; readonly actor: string }

const columns = [
  ...(['title', 'description', 'role', 'agent_id', 'priority', 'status', 'blocked_reason', 'labels', 'context'] as const),
  ...(['created_at', 'updated_at', 'created_by', 'version', 'attempt', 'max_attempts', 'failures', 'available_at', 'queue_at'] as const),
  ...(['parent_id', 'budget_tokens', 'tokens_used', 'tokens_reserved', 'cancel_requested', 'open_dependencies', 'error'] as const),
]
type Columns = Readonly<Record<(typeof columns)[number], Param>>
const places = columns.map(() => '?').join(', ')
const insertText = `INSERT INTO tasks (id, ${columns.join(', ')}) VALUES (${taken.tasks}, ${places}) RETURNING *`

function columnsOf(context: PlaneContext, { draft, needs, actor }: NewTask): Columns {
  const now = context.now()
  const availableAt = draft.available_at === undefined ? now : Date.parse(draft.available_at)
  const isBlocked = needs.open > 0
  return {
    title: draft.title,
    description: draft.description,
    role: draft.role,
    agent_id: draft.agent_id ?? null,
    priority: rankOf(draft.priority),
    status: isBlocked ? 'blocked' : 'pending',
    blocked_reason: isBlocked ? 'dependency' : null,
    labels: JSON.stringify([...new Set(draft.labels)]),
    context: JSON.stringify(draft.context),
    created_at: now,
    updated_at: now,
    created_by: actor,
    version: 1,
    attempt: 0,
    max_attempts: draft.max_attempts,
    failures: 0,
    available_at: availableAt,
    queue_at: queueAt({ createdAt: now, priority: draft.priority, availableAt, now }),
    parent_id: draft.parent_task_id === undefined ? null : numberOf(draft.parent_task_id),
    budget_tokens: draft.budget_tokens ?? null,
    tokens_used: 0,
    tokens_reserved: 0,
    cancel_requested: 0,
    open_dependencies: needs.open,
    error: needs.problem,
  }
}

function* insertTask(values: Columns): Command<Row> {
  yield* take('tasks')
  const row = yield* first(
    insertText,
    columns.map((name) => values[name]),
  )
  if (!row) throw new Error('INSERT … RETURNING answered no row')
  return row
}
