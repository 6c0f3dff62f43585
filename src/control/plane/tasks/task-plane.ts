/** Serves tasks: each method is one command, and so one transaction; operators edit, cancel and retry tasks here. */

import { type Caller, onlyOperator, signatureOf } from '../../contract/caller.ts'
import type { TaskPlane } from '../../contract/plane.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Command, Param, Row } from '../../contract/store-port.ts'
import type { Task, TaskDraft, TaskPatch } from '../../contract/task-shapes.ts'
import { assertReportLimit } from '../budget/reservations.ts'
import { defined, idOf, int, intOrNull, numberOf, type PlaneContext, queryOne, text } from '../command.ts'
import { beatLease, releaseLease, sweep } from './claim-task.ts'
import { assertFewOpenTasks, createBatchKey, createTask, createTaskOnce, deleteOldReplies, requireCreator } from './create-task.ts'
import { clearDependentWarnings, replaceNeeds } from './dependencies.ts'
import { beginEffect, endEffect, listEffects, resolveEffects } from './effects.ts'
import { endTask, requeueTask } from './end-task.ts'
import { listTasks } from './list-tasks.ts'
import {
  announceReady,
  changeTask,
  fullTask,
  hasEnded,
  isLeased,
  lockTask,
  priorityOf,
  queueAt,
  rankOf,
  readTask,
  recordTask,
  replaceLabels,
  requireReadable,
  runBatchKey,
} from './task-change.ts'
import { createWaitingClaims } from './waiting-claims.ts'

/** `tick` is the part of `Plane.tick` that concerns tasks. */
export function createTaskPlane(context: PlaneContext): TaskPlane & { tick(): Promise<void> } {
  const { read, write } = context.store
  const claim = createWaitingClaims(context)
  return {
    create: (caller, draft, once) => write(() => createTaskOnce(context, { caller, draft, once }), createBatchKey(caller, draft, once)),
    createMany: (caller, drafts) => write(() => createAll(context, caller, drafts)),
    get: (caller, id) => read(() => getTask(caller, id)),
    list: (caller, query) => read(() => listTasks(caller, query)),
    edit: (caller, id, patch, version) => write(() => fullTaskAfter(editTask(context, { caller, id, patch, version }))),
    claim: (caller, request, disconnected) => claim({ caller, request, disconnected }),
    beat: (caller, id) => write(() => beatLease(context, caller, id), runBatchKey(caller)),
    async release(caller, id, request) {
      if (caller.kind === 'run') await assertReportLimit(context, { caller, agentId: caller.id, tokens: request.tokens_used ?? 0 })
      return await write(() => fullTaskAfter(releaseLease(context, { caller, id, request })), runBatchKey(caller))
    },
    cancel: (caller, id, note) => write(() => fullTaskAfter(cancelTask(context, { caller, id, note }))),
    retry: (caller, id, note) => write(() => fullTaskAfter(retryTask(context, { caller, id, note }))),
    resolve: (caller, id, request) => write(() => fullTaskAfter(resolveEffects(context, { caller, id, request }))),
    effects: (caller, id) => read(() => effectsOf(caller, id)),
    beginEffect: (caller, id, request) => write(() => beginEffect(context, { caller, id }, request), runBatchKey(caller)),
    endEffect: (caller, id, key, result) => write(() => endEffect(context, { caller, id }, key, result), runBatchKey(caller)),
    tick: () => tick(context),
  }
}

function* fullTaskAfter(change: Command<Row>): Command<Task> {
  return yield* fullTask(yield* change)
}

const mostAtOnce = 1_000

function* createAll(context: PlaneContext, caller: Caller, drafts: readonly TaskDraft[]): Command<readonly Task[]> {
  requireCreator(caller)
  if (drafts.length > mostAtOnce)
    throw new PlaneRefusal('too_large', `${drafts.length} tasks are more than ${mostAtOnce} at once; send them in several requests`)
  yield* assertFewOpenTasks(context, caller, drafts.length)
  const tasks: Task[] = []
  for (const draft of drafts) tasks.push(yield* createTask(context, caller, draft))
  return tasks
}

function* getTask(caller: Caller, id: string): Command<Task> {
  const row = yield* readTask(id)
  requireReadable(caller, row)
  return yield* fullTask(row)
}

function* effectsOf(caller: Caller, id: string) {
  requireReadable(caller, yield* readTask(id))
  return yield* listEffects(numberOf(id))
}

/** Sweeps several times, while there is more to do than one sweep takes. */
async function tick(context: PlaneContext): Promise<void> {
  for (let rounds = 0; rounds < 20; rounds += 1) {
    const nextAt = await context.store.write(() => sweep(context))
    if (nextAt === null || nextAt > context.now()) break
  }
  await context.store.write(() => deleteOldReplies(context))
}

/** Changes an open task: its texts, who may take it, when, after which other tasks, and whether an operator blocks it. */
type Edit = { readonly caller: Caller; readonly id: string; readonly patch: TaskPatch; readonly version?: number | undefined }

type Columns = Record<string, Param>

/** @throws PlaneRefusal version_conflict when the task changed since that version; conflict when it is running or has ended */
function* editTask(context: PlaneContext, { caller, id, patch, version }: Edit): Command<Row> {
  onlyOperator(caller, 'edit tasks')
  const task = yield* lockTask(context, numberOf(id))
  assertVersion(task, version)
  assertEditable(task, patch)
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

function assertVersion(task: Row, version: number | undefined): void {
  if (version === undefined || version === int(task, 'version')) return
  const id = idOf('TASK', int(task, 'id'))
  throw new PlaneRefusal(
    'version_conflict',
    `${id} has version ${int(task, 'version')}, not ${version}: somebody changed it; read it again`,
    { version: int(task, 'version') },
  )
}

function assertEditable(task: Row, patch: TaskPatch): void {
  const id = idOf('TASK', int(task, 'id'))
  if (hasEnded(task)) throw new PlaneRefusal('conflict', `${id} is ${text(task, 'status')}; retry it, or create another task`)
  const others = Object.keys(patch).filter((field) => field !== 'priority' && field !== 'labels')
  if (task.status === 'running' && others.length > 0)
    throw new PlaneRefusal('conflict', `${id} is running; only its priority and labels can change now, not ${others.join(', ')}`)
}

function textColumns(patch: TaskPatch): Columns {
  const { title, description, role, agent_id, labels, context, max_attempts, budget_tokens } = patch
  return defined({
    ...{ title, description, role, agent_id, max_attempts, budget_tokens },
    labels: labels && JSON.stringify([...new Set(labels)]),
    context: context && JSON.stringify(context),
  })
}

/** Computes the place in the queue. `available_at` of a running task is its lease, so its place is that of a task whose time has come. */
function placeColumns(context: PlaneContext, task: Row, patch: TaskPatch): Columns {
  const now = context.now()
  const priority = patch.priority ?? priorityOf(task)
  const availableAt = patch.available_at === undefined ? int(task, 'available_at') : Date.parse(patch.available_at)
  const readyAt = task.status === 'running' ? now : availableAt
  const place = { queue_at: queueAt({ createdAt: int(task, 'created_at'), priority, availableAt: readyAt, now }) }
  return { priority: rankOf(priority), ...place, ...(task.status === 'running' ? {} : { available_at: availableAt }) }
}

/** Tells whether a task that an operator blocked has an open question: once released, it waits for the answer. */
function* hasQuestion(task: Row): Command<boolean> {
  const open = "SELECT id FROM approvals WHERE task_id = ? AND run_id IS NOT NULL AND state = 'pending' LIMIT 1"
  return task.blocked_reason === 'operator' && (yield* queryOne(open, [int(task, 'id')])) !== undefined
}

/** Computes what the task waits for now: an operator, other tasks, its budget, or nothing. Only resolve settles an effect in doubt. */
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

/** Tells whether a higher budget of its own lets the task continue; the budgets of the day wake it themselves. */
function isAffordable(task: Row, patch: TaskPatch): boolean {
  if (patch.budget_tokens === undefined) return false
  const budget = intOrNull(task, 'budget_tokens')
  return budget === null || int(task, 'tokens_used') + int(task, 'tokens_reserved') < budget
}

type TaskDecision = { readonly caller: Caller; readonly id: string; readonly note: string }

/**
 * Cancels a task. A running task learns it with its next beat, and ends when the run releases it or its lease expires. A dead task becomes
 * cancelled, because nobody needs it any more. @throws PlaneRefusal conflict
 */
function* cancelTask(context: PlaneContext, { caller, id, note }: TaskDecision): Command<Row> {
  onlyOperator(caller, 'cancel tasks')
  const task = yield* lockTask(context, numberOf(id))
  if (hasEnded(task) && task.status !== 'dead') throw new PlaneRefusal('conflict', `${id} is ${text(task, 'status')} already`)
  const actor = signatureOf(caller)
  if (task.status === 'dead') return yield* cancelDead(context, task, actor)
  if (!isLeased(context, task))
    return yield* endTask(context, task, { status: 'cancelled', actor, run: { state: 'lost' }, error: note || null })
  const marked = yield* changeTask(context, int(task, 'id'), { cancel_requested: 1, error: note || null })
  yield* recordTask(context, marked, { type: 'task.cancel_requested', actor, data: { note } })
  return marked
}

/** Cancels a dead task. Its error and its runs stay, and its dependents have known since it died. */
function* cancelDead(context: PlaneContext, task: Row, actor: string): Command<Row> {
  const cancelled = yield* changeTask(context, int(task, 'id'), { status: 'cancelled' })
  yield* recordTask(context, cancelled, { type: 'task.cancelled', actor })
  return cancelled
}

/** Gives an ended task all its attempts again, and runs a task behind a back-off at once. @throws PlaneRefusal conflict */
function* retryTask(context: PlaneContext, { caller, id, note }: TaskDecision): Command<Row> {
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
