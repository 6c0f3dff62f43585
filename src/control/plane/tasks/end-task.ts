/** Ends tasks, blocks them for a reason, and returns them to the queue. */

import { type Caller, signatureOf } from '../../contract/caller.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Run } from '../../contract/run-shapes.ts'
import type { Command, Row } from '../../contract/store-port.ts'
import type { Task } from '../../contract/task-shapes.ts'
import { closeReservations, forfeitRun, reportTotal } from '../budget/reservations.ts'
import { flag, idOf, int, intOrNull, numberOf, type PlaneContext, queryOne, text } from '../command.ts'
import { releaseDependents, warnDependents } from './dependencies.ts'
import {
  announceReady,
  assertLease,
  changeTask,
  hasEnded,
  isLeased,
  leaseLost,
  lockTask,
  priorityOf,
  queueAt,
  recordTask,
} from './task-change.ts'

/** Accepts a number or an id such as TASK-001. */
type TaskRef = number | string
const refOf = (task: TaskRef) => (typeof task === 'number' ? task : numberOf(task))

type TaskEnd = {
  readonly status: 'completed' | 'failed' | 'dead' | 'cancelled'
  readonly actor: string
  readonly run: EndOfRun
  readonly result?: Record<string, unknown> | null
  readonly error?: string | null
}

const concerned = `(SELECT COUNT(*) FROM approvals WHERE task_id = tasks.id AND state = 'pending') AS questions,
  (SELECT COUNT(*) FROM dependencies WHERE needs = tasks.id) AS dependents`

/** Ends a task, together with its run and account, its open questions and its dependents, in the same transaction; nothing else ends tasks. */
export function* endTask(context: PlaneContext, task: Row, { status, actor, run, result = null, error = null }: TaskEnd): Command<Row> {
  const agentId = yield* endRun(context, task, run)
  const columns = {
    status,
    blocked_reason: null,
    result: result && JSON.stringify(result),
    error,
    ended_at: context.now(),
    cancel_requested: 0,
  }
  const ended = yield* changeTask(context, int(task, 'id'), { ...columns, ...noLease }, `*, ${concerned}`)
  if (int(ended, 'questions') > 0) yield* cancelQuestions(context, ended)
  yield* recordTask(context, ended, { type: `task.${status}`, actor, data: { error: error || undefined }, agentId })
  if (int(ended, 'dependents') === 0) return ended
  if (status === 'completed') yield* releaseDependents(context, ended, actor)
  else yield* warnDependents(context, ended, actor)
  return ended
}

type Completion = {
  readonly caller: Caller
  /** The row of the task, locked by this command. */
  readonly task: Row
  readonly skill?: string | null | undefined
  /** The word of the agent: `failed`, `failure` and `error` fail the task, every other word completes it. */
  readonly status: string
  readonly output: string
  readonly tokensUsed: number
}

/**
 * Ends a task as its agent reports. With a run token the lease must be in force; no other credential may end a task that a run has. @throws
 * PlaneRefusal lease_lost, conflict, forbidden, not_found
 */
export function* completeTask(context: PlaneContext, completion: Completion): Command<Row> {
  const { caller, task, skill, status, output, tokensUsed } = completion
  if (caller.kind === 'run') assertLease(context, task, caller)
  else assertUnleased(context, task, caller)
  const hasFailed = /^(?:fail|failed|failure|error)$/i.test(status)
  const result = { status, output, tokens_used: tokensUsed, skill_executed: skill ?? null }
  const error = hasFailed ? output.slice(0, 8_192) || status : null
  const ending = hasFailed ? ('failed' as const) : ('completed' as const)
  return yield* endTask(context, task, {
    status: ending,
    actor: signatureOf(caller),
    run: { state: ending, error, skill, total: tokensUsed },
    result,
    error,
  })
}

/**
 * Refuses other credentials while a run has the task. A task that waits for an operator's answer ends by that answer, by a run that reads it,
 * or by an operator.
 */
function assertUnleased(context: PlaneContext, task: Row, caller: Caller): void {
  if (caller.kind === 'agent' && !isFor(task, caller))
    throw new PlaneRefusal('forbidden', `${idOf('TASK', int(task, 'id'))} is not a task of yours`)
  if (isLeased(context, task)) throw leaseLost(task)
  const isAsking = task.status === 'awaiting_approval' && caller.kind !== 'operator'
  if (hasEnded(task) || task.status === 'blocked' || isAsking)
    throw new PlaneRefusal('conflict', `${idOf('TASK', int(task, 'id'))} is ${text(task, 'status')} and cannot be completed`)
}

function isFor(task: Row, agent: { readonly id: string; readonly role: string }): boolean {
  return task.agent_id === null ? task.role === agent.role : task.agent_id === agent.id
}

export type Requeue = {
  readonly type: string
  readonly actor: string
  readonly run: EndOfRun
  /** When it may run again; a past time means at once. */
  readonly availableAt: number
  readonly failures: number
  readonly error?: string | null
}

/** Returns a task to the queue, behind its back-off; a cancelled task ends instead. */
export function* requeueTask(
  context: PlaneContext,
  task: Row,
  { type, actor, run, availableAt, failures, error = null }: Requeue,
): Command<Row> {
  if (flag(task, 'cancel_requested'))
    return yield* endTask(context, task, { status: 'cancelled', actor, run: { ...run, state: 'cancelled' }, error })
  const agentId = yield* endRun(context, task, run)
  const now = context.now()
  const place = queueAt({ createdAt: int(task, 'created_at'), priority: priorityOf(task), availableAt, now })
  const columns = {
    status: 'pending',
    blocked_reason: null,
    available_at: availableAt,
    queue_at: place,
    failures,
    error,
    result: null,
    ended_at: null,
  }
  const pending = yield* changeTask(context, int(task, 'id'), { ...columns, ...noLease })
  const data = { available_at: new Date(availableAt).toISOString(), error: error || undefined }
  yield* recordTask(context, pending, { type, actor, data, agentId })
  yield* announceReady(context, pending)
  return pending
}

const waitsForOthers = new Set(['awaiting_approval', 'budget_blocked'])

/** Returns a task that waits for an approval or for budget to the queue; leaves every other task alone. */
export function* wakeTask(context: PlaneContext, taskId: TaskRef, actor = 'control plane'): Command<boolean> {
  const task = yield* lockTask(context, refOf(taskId))
  const from = text(task, 'status')
  if (!waitsForOthers.has(from)) return false
  const again = {
    type: 'task.woken',
    actor,
    run: { state: 'waiting' as const },
    availableAt: context.now(),
    failures: int(task, 'failures'),
  }
  yield* requeueTask(context, task, again)
  return true
}

type ParkedBy = { readonly actor?: string; readonly error?: string | null }

/** Blocks a task until somebody acts. Its run ends as `waiting`, and the run's token is no longer in force. It does nothing to an ended task. */
export function* blockTask(
  context: PlaneContext,
  taskId: TaskRef,
  status: 'awaiting_approval' | 'budget_blocked' | 'blocked',
  reason: NonNullable<Task['blocked_reason']> | null = null,
  { actor = 'control plane', error = null }: ParkedBy = {},
): Command<Row> {
  const task = yield* lockTask(context, refOf(taskId))
  if (hasEnded(task)) return task
  if (flag(task, 'cancel_requested')) return yield* endTask(context, task, { status: 'cancelled', actor, run: { state: 'cancelled' } })
  const agentId = yield* endRun(context, task, { state: 'waiting', error })
  const blocked = yield* changeTask(context, int(task, 'id'), { status, blocked_reason: reason, error, ...noLease })
  const data = { reason: reason ?? undefined, error: error || undefined }
  yield* recordTask(context, blocked, { type: `task.${status}`, actor, data, agentId })
  return blocked
}

export type EndOfRun = {
  readonly state: Exclude<Run['state'], 'running'>
  readonly error?: string | null | undefined
  readonly skill?: string | null | undefined
  /** The total that the run reports; without it, what the run had reserved counts as spent. */
  readonly total?: number | undefined
}

/** These columns mark a task without a lease. */
export const noLease = { lease_digest: null, lease_ms: null } as const

const ofRun = `id, task_id, agent_id, role, tokens_used,
  (SELECT COUNT(*) FROM reservations WHERE run_id = runs.id AND state = 'open') AS open_reservations`

/** Ends the run of a running task; the caller changes the task. @returns the agent that had it */
function* endRun(context: PlaneContext, task: Row, { state, error = null, skill = null, total }: EndOfRun): Command<string | undefined> {
  const runId = task.status === 'running' ? intOrNull(task, 'run_id') : null
  if (runId === null) return undefined
  const ended = yield* queryOne(
    `UPDATE runs SET state = ?, ended_at = ?, error = ?, skill = COALESCE(?, skill) WHERE id = ? AND state = 'running' RETURNING ${ofRun}`,
    [state, context.now(), error, skill, runId],
  )
  if (!ended) return undefined
  const hasReserved = int(ended, 'open_reservations') > 0
  if (total === undefined && hasReserved) yield* forfeitRun(context, runId)
  if (total !== undefined && hasReserved) yield* closeReservations(context, { runId, taskId: int(task, 'id') })
  if (total !== undefined) yield* reportTotal(context, ended, total)
  return text(ended, 'agent_id')
}

function* cancelQuestions(context: PlaneContext, task: Row): Command<void> {
  yield [
    "UPDATE approvals SET state = 'cancelled', decided_at = ?, note = ? WHERE task_id = ? AND state = 'pending'",
    [context.now(), `${idOf('TASK', int(task, 'id'))} ended`, int(task, 'id')],
  ]
}
