/** Locks a task, checks the lease of a run that writes to it, changes its row and records the change: every change of a task uses this file. */

import type { Caller, RunCaller } from '../../contract/caller.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { BatchKey, Command, Param, Row } from '../../contract/store-port.ts'
import { type Task, type TaskDraft, task as taskShape } from '../../contract/task-shapes.ts'
import {
  flag,
  idOf,
  idOrNull,
  int,
  intOrNull,
  marks,
  numberOf,
  object,
  objectOrNull,
  type PlaneContext,
  queryOne,
  strings,
  text,
  textOrNull,
  time,
  timeOrNull,
} from '../command.ts'
import { recordEvent } from '../events.ts'

/** @throws PlaneRefusal not_found */
export function* lockTask(context: PlaneContext, number: number): Command<Row> {
  const row = yield* queryOne(`SELECT * FROM tasks WHERE id = ?${context.dialect.forUpdate}`, [number])
  if (!row) throw new PlaneRefusal('not_found', `the task ${idOf('TASK', number)} does not exist`)
  return row
}

/** Changes columns, whose names come from our own code, never from a request. @returns the new row, and what else `returning` asks for */
export function* changeTask(
  context: PlaneContext,
  number: number,
  columns: Readonly<Record<string, Param>>,
  returning = '*',
): Command<Row> {
  const names = Object.keys(columns)
  const row = yield* queryOne(
    `UPDATE tasks SET ${names.map((name) => `${name} = ?, `).join('')}version = version + 1, updated_at = ? WHERE id = ? RETURNING ${returning}`,
    [...Object.values(columns), context.now(), number],
  )
  if (!row) throw new PlaneRefusal('not_found', `the task ${idOf('TASK', number)} does not exist`)
  if (names.some((name) => queueColumns.has(name))) yield* moveLabels([row])
  return row
}

/** These columns decide the place of a task in the queue. */
const queueColumns = new Set(['status', 'queue_at', 'role', 'agent_id'])

type TaskEvent = { readonly type: string; readonly actor: string; readonly data?: Record<string, unknown>; readonly agentId?: string }

/** Records what happened to a task, with its last run. */
export function* recordTask(context: PlaneContext, row: Row, { type, actor, data, agentId }: TaskEvent): Command<void> {
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

/** Names the topic that wakes workers that wait for a task of this role. */
export function readyTopic(role: string): string {
  return `tasks:${role}`
}

/** Wakes these workers when the task may be claimed. */
export function* announceReady(context: PlaneContext, row: Row): Command<void> {
  if (row.status === 'pending') yield* context.store.announce(readyTopic(text(row, 'role')))
}

/** Returns the task as the API sends it, with its dependencies and the agent that has it. `agentId` saves a query when the caller knows the agent. */
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
  const run = yield* queryOne('SELECT agent_id FROM runs WHERE id = ?', [int(row, 'run_id')])
  return run ? text(run, 'agent_id') : null
}

export function* readTask(id: string): Command<Row> {
  const row = yield* queryOne('SELECT * FROM tasks WHERE id = ?', [numberOf(id)])
  if (!row) throw new PlaneRefusal('not_found', `the task ${id} does not exist`)
  return row
}

/**
 * Lets an agent read the tasks of its role and its own, and a run its own task. The server checks routes; this protects the plane without the
 * server. @throws PlaneRefusal
 */
export function requireReadable(caller: Caller, row: Row): void {
  if (caller.kind === 'operator') return
  const id = idOf('TASK', int(row, 'id'))
  if (caller.kind === 'run' && caller.taskId === id) return
  if (caller.kind === 'agent' && (row.role === caller.role || row.agent_id === caller.id || row.created_by === `agent ${caller.id}`)) return
  throw new PlaneRefusal('forbidden', `${id} is not a task of yours`)
}

const ended = new Set(['completed', 'failed', 'dead', 'cancelled'])

export function hasEnded(row: Row): boolean {
  return ended.has(text(row, 'status'))
}

type Priority = TaskDraft['priority']

const { status: statusShape, blocked_reason: reasonShape } = taskShape.shape

/** An hour of bonus counts as much as an hour of waiting, so a task of low priority runs in the end. */
const bonusMs: Readonly<Record<Priority, number>> = { low: -3_600_000, medium: 0, high: 3_600_000, urgent: 10_800_000 }
const ranks: readonly Priority[] = ['low', 'medium', 'high', 'urgent']

export function rankOf(priority: Priority): number {
  return ranks.indexOf(priority)
}

export function priorityOf(row: Row): Priority {
  return ranks[int(row, 'priority')] ?? 'medium'
}

/** Marks in `queue_at` a pending task that may not run yet; a claim reads the index only up to this value. */
const DELAYED = 1_000_000_000_000_000

type QueuePlace = { readonly createdAt: number; readonly priority: Priority; readonly availableAt: number; readonly now: number }

export function queueAt({ createdAt, priority, availableAt, now }: QueuePlace): number {
  return availableAt > now ? DELAYED : createdAt - bonusMs[priority]
}

/** Computes `queueAt` in SQL for a task whose time has come. */
export const readyQueueAt = `created_at - CASE priority WHEN 0 THEN ${bonusMs.low} WHEN 2 THEN ${bonusMs.high} WHEN 3 THEN ${bonusMs.urgent} ELSE 0 END`

/** `needs` holds the numbers of the tasks that it depends on, `agentId` the agent that has it now. */
export function taskOf(row: Row, needs: readonly number[] = [], agentId: string | null = null): Task {
  const isRunning = row.status === 'running'
  return {
    task_id: idOf('TASK', int(row, 'id')),
    title: text(row, 'title'),
    description: text(row, 'description'),
    role: text(row, 'role'),
    agent_id: textOrNull(row, 'agent_id'),
    assigned_to: agentId ?? textOrNull(row, 'agent_id') ?? text(row, 'role'),
    priority: priorityOf(row),
    status: statusShape.parse(row.status),
    blocked_reason: reasonShape.parse(row.blocked_reason),
    labels: strings(row, 'labels'),
    depends_on: needs.map((need) => idOf('TASK', need)),
    context: object(row, 'context'),
    created_at: time(row, 'created_at'),
    updated_at: time(row, 'updated_at'),
    created_by: text(row, 'created_by'),
    version: int(row, 'version'),
    attempt: int(row, 'attempt'),
    max_attempts: int(row, 'max_attempts'),
    available_at: time(row, 'available_at'),
    lease_until: isRunning ? timeOrNull(row, 'available_at') : null,
    run_id: idOrNull('RUN', intOrNull(row, 'run_id')),
    parent_task_id: idOrNull('TASK', intOrNull(row, 'parent_id')),
    budget_tokens: intOrNull(row, 'budget_tokens'),
    tokens_used: int(row, 'tokens_used'),
    check: textOrNull(row, 'check_command'),
    cancel_requested: flag(row, 'cancel_requested'),
    result: objectOrNull(row, 'result'),
    error: textOrNull(row, 'error'),
    ended_at: timeOrNull(row, 'ended_at'),
  }
}

/** The queue is the role, or "ROLE AGENT" for a task of one agent alone; a task that is not pending is in no queue. */
const place = `UPDATE labels SET queue_at = (SELECT queue_at FROM tasks WHERE tasks.id = labels.task_id),
  queue = (SELECT CASE WHEN status <> 'pending' THEN NULL WHEN agent_id IS NULL THEN role ELSE role || ' ' || agent_id END
    FROM tasks WHERE tasks.id = labels.task_id)`

/** Adds the labels of a task that has none yet; the row of the task says where it stands. */
export function* storeLabels(task: Row, labels: readonly string[]): Command<void> {
  if (labels.length === 0) return
  for (const label of new Set(labels)) yield ['INSERT INTO labels (task_id, label) VALUES (?, ?)', [int(task, 'id'), label]]
  yield* moveLabels([task])
}

/** Moves the labels after the status, the role, the agent or the place in the queue of tasks has changed; `tasks` have the columns id and labels. */
export function* moveLabels(tasks: readonly Row[]): Command<void> {
  const ids = tasks.filter((task) => text(task, 'labels') !== '[]').map((task) => int(task, 'id'))
  if (ids.length > 0) yield [`${place} WHERE task_id IN (${marks(ids)})`, ids]
}

export function* replaceLabels(task: Row, labels: readonly string[]): Command<void> {
  yield ['DELETE FROM labels WHERE task_id = ?', [int(task, 'id')]]
  yield* storeLabels(task, labels)
}

/**
 * Locks the task of a run token. An expired lease is lost even when no other run has the task: a run that could not beat in time may have
 * been stopped for any length of time, and must not act on what it knew before. @throws PlaneRefusal forbidden for another task or
 * credential, lease_lost
 */
export function* lockLease(context: PlaneContext, caller: Caller, id: string): Command<Row> {
  const run = runCallerOf(caller, numberOf(id))
  const row = yield* lockTask(context, numberOf(id))
  assertLease(context, row, run)
  return row
}

function runCallerOf(caller: Caller, number: number): RunCaller {
  if (caller.kind !== 'run') throw new PlaneRefusal('forbidden', 'only the run token of the task may do this')
  if (numberOf(caller.taskId) === number) return caller
  throw new PlaneRefusal('forbidden', `this run token is for ${caller.taskId}, not for ${idOf('TASK', number)}`)
}

/** Checks the lease like `lockLease`, for a locked row. */
export function assertLease(context: PlaneContext, row: Row, caller: Caller): void {
  if (!hasLease(context, row, runCallerOf(caller, int(row, 'id')))) throw leaseLost(row)
}

/** Lets writes of runs of different tasks share a batch, because each touches only its own task. */
export function runBatchKey(caller: Caller): BatchKey | undefined {
  return caller.kind === 'run' ? { kind: 'run', key: caller.taskId } : undefined
}

/** Compares the number of the run, which belongs to one claim only, and so to one token. */
function hasLease(context: PlaneContext, row: Row, caller: RunCaller): boolean {
  return isLeased(context, row) && int(row, 'run_id') === numberOf(caller.runId) && int(row, 'attempt') === caller.attempt
}

export function isLeased(context: PlaneContext, row: Row): boolean {
  return row.status === 'running' && int(row, 'available_at') > context.now()
}

export function leaseLost(row: Row): PlaneRefusal {
  const status = row.status === 'running' ? 'another run has it, or the lease expired' : `it is ${row.status}`
  return new PlaneRefusal('lease_lost', `the lease of ${idOf('TASK', int(row, 'id'))} is lost: ${status}; stop working on it`, {
    status: row.status,
    attempt: row.attempt,
  })
}
