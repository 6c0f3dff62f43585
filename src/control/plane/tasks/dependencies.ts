/** Makes tasks wait for the tasks they depend on, wakes them when the last one completes, and records when one never will. */

import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Command, Row } from '../../contract/store-port.ts'
import { idOf, int, marks, numberOf, type PlaneContext, queryOne, text } from '../command.ts'
import { announceReady, changeTask, hasEnded, lockTask, priorityOf, queueAt, recordTask } from './task-change.ts'

export type Needs = {
  readonly numbers: readonly number[]
  /** Counts those that have not completed. */
  readonly open: number
  /** Explains why the task waits for longer than it should: `needs TASK-003, which failed`. */
  readonly problem: string | null
}

/** Locks the tasks that a task depends on, so that none of them ends before the commit. @throws PlaneRefusal */
export function* readNeeds(context: PlaneContext, ids: readonly string[]): Command<Needs> {
  if (ids.length === 0) return { numbers: [], open: 0, problem: null }
  const numbers = [...new Set(ids.map(numberOf))].sort((a, b) => a - b)
  const rows = yield [`SELECT id, status FROM tasks WHERE id IN (${marks(numbers)}) ORDER BY id${context.dialect.forUpdate}`, numbers]
  const missing = numbers.find((number) => !rows.some((row) => int(row, 'id') === number))
  if (missing !== undefined) throw new PlaneRefusal('bad_request', `depends_on: the task ${idOf('TASK', missing)} does not exist`)
  const open = rows.filter((row) => row.status !== 'completed')
  yield* assertFewDependents(open.map((row) => int(row, 'id')))
  const hopeless = open.find(hasEnded)
  return { numbers, open: open.length, problem: hopeless ? problemOf(hopeless) : null }
}

/** The transaction that completes a task wakes all that wait for it, while every other command waits. */
const mostDependents = 10_000

function* assertFewDependents(numbers: readonly number[]): Command<void> {
  if (numbers.length === 0) return
  const crowded = yield* queryOne(`SELECT needs FROM dependencies WHERE needs IN (${marks(numbers)}) GROUP BY needs HAVING COUNT(*) >= ?`, [
    ...numbers,
    mostDependents,
  ])
  if (crowded)
    throw new PlaneRefusal('too_many', `depends_on: ${mostDependents} tasks wait for ${idOf('TASK', int(crowded, 'needs'))} already`)
}

export function* storeNeeds(taskNumber: number, numbers: readonly number[]): Command<void> {
  if (numbers.length === 0) return
  yield [
    `INSERT INTO dependencies (task_id, needs) VALUES ${numbers.map(() => '(?, ?)').join(', ')}`,
    numbers.flatMap((need) => [taskNumber, need]),
  ]
}

/** @throws PlaneRefusal dependency_cycle, when one of `needs` waits for the task itself, directly or through other tasks */
export function* assertNoCycle(taskNumber: number, needs: readonly number[]): Command<void> {
  if (needs.length === 0) return
  const cycle = yield* queryOne(
    `WITH RECURSIVE reached (id) AS (
      SELECT id FROM tasks WHERE id IN (${marks(needs)})
      UNION SELECT d.needs FROM dependencies d JOIN reached r ON d.task_id = r.id)
    SELECT id FROM reached WHERE id = ?`,
    [...needs, taskNumber],
  )
  if (!cycle) return
  const id = idOf('TASK', taskNumber)
  throw new PlaneRefusal('dependency_cycle', `${id} would wait for itself: a task of depends_on waits for ${id} already`)
}

/** Makes the tasks claimable that waited only for this completed task. */
export function* releaseDependents(context: PlaneContext, row: Row, actor: string): Command<void> {
  const dependents = yield ['SELECT task_id FROM dependencies WHERE needs = ? ORDER BY task_id', [int(row, 'id')]]
  for (const dependent of dependents) yield* countDown(context, int(dependent, 'task_id'), actor)
}

function* countDown(context: PlaneContext, number: number, actor: string): Command<void> {
  const dependent = yield* queryOne(
    'UPDATE tasks SET open_dependencies = open_dependencies - 1 WHERE id = ? AND open_dependencies > 0 RETURNING *',
    [number],
  )
  if (dependent && int(dependent, 'open_dependencies') === 0) yield* unblock(context, dependent, actor)
}

function* unblock(context: PlaneContext, row: Row, actor: string): Command<void> {
  if (row.status !== 'blocked' || row.blocked_reason !== 'dependency') return
  const now = context.now()
  const place = { createdAt: int(row, 'created_at'), priority: priorityOf(row), availableAt: int(row, 'available_at'), now }
  const columns = { status: 'pending', blocked_reason: null, error: null, queue_at: queueAt(place) }
  const pending = yield* changeTask(context, int(row, 'id'), columns)
  yield* recordTask(context, pending, { type: 'task.unblocked', actor })
  yield* announceReady(context, pending)
}

/** Records in each waiting task that this one failed, died or was cancelled; it continues to wait until an operator retries or edits a task. */
export function* warnDependents(context: PlaneContext, row: Row, actor: string): Command<void> {
  const dependents = yield [
    `SELECT t.id FROM dependencies d JOIN tasks t ON t.id = d.task_id WHERE d.needs = ? AND t.status = 'blocked' ORDER BY t.id`,
    [int(row, 'id')],
  ]
  for (const dependent of dependents) {
    const waiting = yield* changeTask(context, int(dependent, 'id'), { error: problemOf(row) })
    yield* recordTask(context, waiting, { type: 'task.dependency_failed', actor, data: { needs: idOf('TASK', int(row, 'id')) } })
  }
}

/** Removes these warnings when an operator tries an ended task again. */
export function* clearDependentWarnings(context: PlaneContext, row: Row): Command<void> {
  const begin = problemBegin(row)
  yield [
    `UPDATE tasks SET error = NULL, version = version + 1, updated_at = ? WHERE status = 'blocked' AND blocked_reason = 'dependency'
      AND SUBSTR(error, 1, ?) = ? AND id IN (SELECT task_id FROM dependencies WHERE needs = ?)`,
    [context.now(), begin.length, begin, int(row, 'id')],
  ]
}

/** Replaces what a task depends on. @returns the columns that change with it */
export function* replaceNeeds(
  context: PlaneContext,
  row: Row,
  ids: readonly string[],
): Command<Readonly<Record<string, string | number | null>>> {
  const number = int(row, 'id')
  const needs = yield* readNeeds(context, ids)
  yield* assertNoCycle(number, needs.numbers)
  yield* lockTask(context, number)
  yield ['DELETE FROM dependencies WHERE task_id = ?', [number]]
  yield* storeNeeds(number, needs.numbers)
  return { open_dependencies: needs.open, error: needs.problem }
}

function problemOf(row: Row): string {
  const status = text(row, 'status')
  return `${problemBegin(row)}${status === 'dead' ? 'used up its attempts' : status === 'cancelled' ? 'was cancelled' : status}`
}

function problemBegin(row: Row): string {
  return `needs ${idOf('TASK', int(row, 'id'))}, which `
}
