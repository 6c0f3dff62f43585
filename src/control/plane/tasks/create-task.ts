/** Creates tasks, each with its labels, its dependencies and its place in the queue. */

import { type Caller, signatureOf } from '../../contract/caller.ts'
import type { Once } from '../../contract/plane.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { BatchKey, Command, Param, Row } from '../../contract/store-port.ts'
import { type Task, type TaskDraft, task as taskShape } from '../../contract/task-shapes.ts'
import { int, lastNumber, marks, numberOf, type PlaneContext, queryNumber, queryOne, reserveNumber, text } from '../command.ts'
import { type Needs, readNeeds, storeNeeds } from './dependencies.ts'
import { announceReady, queueAt, rankOf, readTask, recordTask, storeLabels, taskOf } from './task-change.ts'

type CreateResult = { readonly task: Task; readonly replayed: boolean }
type CreateCall = { readonly caller: Caller; readonly draft: TaskDraft; readonly once?: Once | undefined }

/** Creates a task once for each key. @throws PlaneRefusal idempotency_mismatch when the key came with another request before; too_many */
export function* createTaskOnce(context: PlaneContext, { caller, draft, once }: CreateCall): Command<CreateResult> {
  requireCreator(caller)
  if (!once) return { task: yield* createCounted(context, caller, draft), replayed: false }
  const owner = ownerOf(caller)
  const stored = yield* queryOne('SELECT digest, body FROM replies WHERE owner = ? AND key = ?', [owner, once.key])
  if (stored && stored.digest !== once.digest)
    throw new PlaneRefusal('idempotency_mismatch', `Idempotency-Key "${once.key}" was used for another request; use a new key`)
  if (stored) return { task: taskShape.parse(JSON.parse(text(stored, 'body'))), replayed: true }
  const task = yield* createCounted(context, caller, draft)
  yield [
    'INSERT INTO replies (owner, key, digest, status, body, at) VALUES (?, ?, ?, 201, ?, ?)',
    [owner, once.key, once.digest, JSON.stringify(task), context.now()],
  ]
  return { task, replayed: false }
}

/** Counts only requests that were not answered before. */
function* createCounted(context: PlaneContext, caller: Caller, draft: TaskDraft): Command<Task> {
  yield* assertFewOpenTasks(context, caller, 1)
  return yield* createTask(context, caller, draft)
}

/**
 * Returns no key for a task with dependencies, which must not miss that one of them ends. Creates of one agent share a key, so that they take
 * turns and the count of its open tasks is exact.
 */
export function createBatchKey(caller: Caller, draft: TaskDraft, once: Once | undefined): BatchKey | undefined {
  if (draft.depends_on.length > 0) return undefined
  if (caller.kind === 'agent') return { kind: 'create', key: ownerOf(caller) }
  return { kind: 'create', key: once ? `${ownerOf(caller)} ${once.key}` : crypto.randomUUID() }
}

/** Lets agents create tasks for any role, so that they can delegate work; a run token and the shared secret create none. */
export function requireCreator(caller: Caller): void {
  if (caller.kind === 'operator' || caller.kind === 'agent') return
  throw new PlaneRefusal('forbidden', 'only an operator or an agent with its own key may create tasks')
}

const ownerOf = (caller: Caller) => `${caller.kind} ${caller.id}`
const storedMs = 24 * 3_600_000

export function* deleteOldReplies(context: PlaneContext): Command<void> {
  yield ['DELETE FROM replies WHERE at < ?', [context.now() - storedMs]]
}

/** Creates a task. `actor` is recorded as its creator when that is not the caller. @throws PlaneRefusal bad_request for an unknown parent or dependency */
export function* createTask(context: PlaneContext, caller: Caller, draft: TaskDraft, actor = signatureOf(caller)): Command<Task> {
  if (draft.parent_task_id !== undefined) yield* readTask(draft.parent_task_id)
  const needs = yield* readNeeds(context, draft.depends_on)
  const row = yield* insertTask(columnsOf(context, { draft, needs, actor }))
  yield* storeLabels(row, draft.labels)
  yield* storeNeeds(int(row, 'id'), needs.numbers)
  yield* recordTask(context, row, { type: 'task.created', actor })
  yield* announceReady(context, row)
  return taskOf(row, needs.numbers)
}

type NewTask = { readonly draft: TaskDraft; readonly needs: Needs; readonly actor: string }

function columnsOf(context: PlaneContext, { draft, needs, actor }: NewTask): Readonly<Record<string, Param>> {
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
    check_command: draft.check ?? null,
  }
}

function* insertTask(columns: Readonly<Record<string, Param>>): Command<Row> {
  const names = Object.keys(columns)
  yield* reserveNumber('tasks')
  const row = yield* queryOne(
    `INSERT INTO tasks (id, ${names.join(', ')}) VALUES (${lastNumber.tasks}, ${marks(names)}) RETURNING *`,
    Object.values(columns),
  )
  if (!row) throw new Error('INSERT … RETURNING answered no row')
  return row
}

export const usualOpenTasks = 1_000

/** Repeats the conditions of the index `tasks_open_of_creators`, so that the count reads only that index, up to the limit. */
const openOf = "ended_at IS NULL AND substr(created_by, 1, 6) IN ('agent ', 'shared') AND created_by = ?"

/**
 * Keeps an agent that loops, or that a text misleads, from creating tasks without end. Operators are exempt; a run creates only escalations,
 * which have a limit of their own. The count is exact because creates of one agent take turns (`createBatchKey`). @throws PlaneRefusal
 * too_many
 */
export function* assertFewOpenTasks({ options }: PlaneContext, caller: Caller, more: number): Command<void> {
  if (caller.kind !== 'agent' && caller.kind !== 'seed') return
  const limit = options.openTasksOfAgent ?? usualOpenTasks
  const counted = `SELECT COUNT(*) AS value FROM (SELECT 1 FROM tasks WHERE ${openOf} LIMIT ?) AS counted`
  const open = yield* queryNumber(counted, [signatureOf(caller), limit])
  if (open + more <= limit) return
  const excess = more === 1 ? 'it may have no more' : `${more} more are above that`
  throw new PlaneRefusal(
    'too_many',
    `${signatureOf(caller)} has created ${open} tasks that have not ended, of ${limit} at a time (CONTROLPLANE_AGENT_OPEN_TASKS); ${excess}: wait until some have ended`,
    { open, limit, retry_after_ms: 60_000 },
  )
}
