/** Changes a task that has not ended: what it says, who may take it, when, after which other tasks, and whether an operator holds it back. */

import { type Caller, onlyOperator, signatureOf } from '../../contract/caller.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Command, Param, Row } from '../../contract/store-port.ts'
import type { TaskPatch } from '../../contract/task-shapes.ts'
import { first, idOf, int, intOrNull, numberOf, type PlaneContext, text } from '../command.ts'
import { clearDependentWarnings, replaceNeeds } from './dependencies.ts'
import { endTask, requeueTask } from './end-task.ts'
import { isLeased } from './lease.ts'
import { announceReady, changeTask, hasEnded, lockTask, priorityOf, queueAt, rankOf, recordTask, replaceLabels } from './task-change.ts'

type Edit = { readonly caller: Caller; readonly id: string; readonly patch: TaskPatch; readonly version?: number | undefined }

type Columns = Record<string, Param>

/** @throws PlaneRefusal version_conflict when somebody changed the task since; conflict when it is running or has ended */
export function* editTask(context: PlaneContext, { caller, id, patch, version }: Edit): Command<Row> {
  onlyOperator(caller, 'edit tasks')
  const task = yield* lockTask(context, numberOf(id))
  refuseStale(task, version)
  refuseEdit(task, patch)
  const changed = {
    ...textColumns(patch),
    ...placeColumns(context, task, patch),
    ...(patch.depends_on ? yield* replaceNeeds(context, task, patch.depends_on) : {}),
  }
  const isAsking = yield* hasQuestion(task)
  const columns = { ...changed, ...statusColumns({ ...task, ...changed }, { patch, isAsking }) }
  const edited = yield* changeTask(context, int(task, 'id'), columns)
  if (patch.labels) yield* replaceLabels(edited, patch.labels)
  yield* recordTask(context, edited, { type: 'task.edited', actor: signatureOf(caller), data: { fields: Object.keys(patch) } })
  yield* announceReady(context, edited)
  return edited
}

function refuseStale(task: Row, version: number | undefined): void {
  if (version === undefined || version === int(task, 'version')) return
  const id = idOf('TASK', int(task, 'id'))
  throw new PlaneRefusal(
    'version_conflict',
    `${id} has version ${int(task, 'version')}, not ${version}: somebody changed it; read it again`,
    {
      version: int(task, 'version'),
    },
  )
}

function refuseEdit(task: Row, patch: TaskPatch): void {
  const id = idOf('TASK', int(task, 'id'))
  if (hasEnded(task)) throw new PlaneRefusal('conflict', `${id} is ${text(task, 'status')}; retry it, or create another task`)
  const others = Object.keys(patch).filter((field) => field !== 'priority' && field !== 'labels')
  if (task.status === 'running' && others.length > 0)
    throw new PlaneRefusal('conflict', `${id} is running; only its priority and labels can change now, not ${others.join(', ')}`)
}

function textColumns(patch: TaskPatch): Columns {
  return {
    ...(patch.title === undefined ? {} : { title: patch.title }),
    ...(patch.description === undefined ? {} : { description: patch.description }),
    ...(patch.role === undefined ? {} : { role: patch.role }),
    ...(patch.agent_id === undefined ? {} : { agent_id: patch.agent_id }),
    ...(patch.labels === undefined ? {} : { labels: JSON.stringify([...new Set(patch.labels)]) }),
    ...(patch.context === undefined ? {} : { context: JSON.stringify(patch.context) }),
    ...(patch.max_attempts === undefined ? {} : { max_attempts: patch.max_attempts }),
    ...(patch.budget_tokens === undefined ? {} : { budget_tokens: patch.budget_tokens }),
  }
}

/** Of a running task `available_at` is the lease, so its place in the queue is that of a task whose time has come. */
function placeColumns(context: PlaneContext, task: Row, patch: TaskPatch): Columns {
  const now = context.now()
  const priority = patch.priority ?? priorityOf(task)
  const availableAt = patch.available_at === undefined ? int(task, 'available_at') : Date.parse(patch.available_at)
  const readyAt = task.status === 'running' ? now : availableAt
  const place = { queue_at: queueAt({ createdAt: int(task, 'created_at'), priority, availableAt: readyAt, now }) }
  return { priority: rankOf(priority), ...place, ...(task.status === 'running' ? {} : { available_at: availableAt }) }
}

/** A task that an operator holds back may have a question open: let go, it waits for the answer. */
function* hasQuestion(task: Row): Command<boolean> {
  const open = "SELECT id FROM approvals WHERE task_id = ? AND run_id IS NOT NULL AND state = 'pending' LIMIT 1"
  return task.blocked_reason === 'operator' && (yield* first(open, [int(task, 'id')])) !== undefined
}

/** What the task waits for now: an operator, other tasks, its budget, or nothing. An effect in doubt is settled by resolve alone. */
function statusColumns(task: Row, { patch, isAsking }: { readonly patch: TaskPatch; readonly isAsking: boolean }): Columns {
  if (task.status === 'running') return {}
  const isInDoubt = task.status === 'blocked' && task.blocked_reason === 'in_doubt'
  if (isInDoubt && patch.blocked !== undefined)
    throw new PlaneRefusal('conflict', `${idOf('TASK', int(task, 'id'))} waits for an effect in doubt; resolve it first`)
  if (isInDoubt) return {}
  if (patch.blocked === true) return { status: 'blocked', blocked_reason: 'operator' }
  if (task.status === 'blocked' && task.blocked_reason === 'operator' && patch.blocked === undefined) return {}
  if (task.status === 'awaiting_approval') return {}
  if (isAsking) return { status: 'awaiting_approval', blocked_reason: null }
  if (task.status === 'budget_blocked' && !isAffordable(task, patch)) return {}
  return int(task, 'open_dependencies') > 0
    ? { status: 'blocked', blocked_reason: 'dependency' }
    : { status: 'pending', blocked_reason: null, ...(task.status === 'pending' ? {} : { error: null }) }
}

/** A higher budget of its own lets a task go on; the budgets of the day wake it themselves. */
function isAffordable(task: Row, patch: TaskPatch): boolean {
  if (patch.budget_tokens === undefined) return false
  const budget = intOrNull(task, 'budget_tokens')
  return budget === null || int(task, 'tokens_used') + int(task, 'tokens_reserved') < budget
}

type Steering = { readonly caller: Caller; readonly id: string; readonly note: string }

/**
 * A task that runs is told with its next beat, and ends when it is released or its lease expires. A dead one is put away: nobody wants it
 * any more. @throws PlaneRefusal conflict
 */
export function* cancelTask(context: PlaneContext, { caller, id, note }: Steering): Command<Row> {
  onlyOperator(caller, 'cancel tasks')
  const task = yield* lockTask(context, numberOf(id))
  if (hasEnded(task) && task.status !== 'dead') throw new PlaneRefusal('conflict', `${id} is ${text(task, 'status')} already`)
  const actor = signatureOf(caller)
  if (task.status === 'dead') return yield* putAway(context, task, actor)
  if (!isLeased(context, task))
    return yield* endTask(context, task, { status: 'cancelled', actor, run: { state: 'lost' }, error: note || null })
  const asked = yield* changeTask(context, int(task, 'id'), { cancel_requested: 1, error: note || null })
  yield* recordTask(context, asked, { type: 'task.cancel_requested', actor, data: { note } })
  return asked
}

/** Its error and the end of its runs stay as they are, and whoever depends on it knows since it died. */
function* putAway(context: PlaneContext, task: Row, actor: string): Command<Row> {
  const cancelled = yield* changeTask(context, int(task, 'id'), { status: 'cancelled' })
  yield* recordTask(context, cancelled, { type: 'task.cancelled', actor })
  return cancelled
}

/** Ended tasks start anew with all their attempts; one behind its back-off runs at once. @throws PlaneRefusal conflict */
export function* retryTask(context: PlaneContext, { caller, id, note }: Steering): Command<Row> {
  onlyOperator(caller, 'retry tasks')
  const task = yield* lockTask(context, numberOf(id))
  if (!canRetry(task)) throw new PlaneRefusal('conflict', `${id} is ${text(task, 'status')}: there is nothing to retry`)
  if (hasEnded(task)) yield* clearDependentWarnings(context, task)
  const again = { actor: signatureOf(caller), run: { state: 'waiting' as const }, availableAt: context.now(), failures: 0 }
  const pending = yield* requeueTask(context, task, { type: 'task.retried', ...again, error: note || null })
  if (int(pending, 'open_dependencies') === 0) return pending
  return yield* changeTask(context, int(task, 'id'), { status: 'blocked', blocked_reason: 'dependency' })
}

function canRetry(task: Row): boolean {
  return ['failed', 'dead', 'cancelled', 'pending', 'budget_blocked'].includes(text(task, 'status'))
}
