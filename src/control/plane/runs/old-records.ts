/** Lists the records that are deleted when they are old, and how each kind is read and deleted. The ledger and the tasks are not among them. */

import type { Command, Statement } from '../../contract/store-port.ts'
import { marks } from '../row.ts'

export type OldRecords = {
  /** Of the setting that says how far the deletion has come. */
  readonly name: string
  /** Small enough that nobody waits for one step. */
  readonly atOnce: number
  /**
   * The next ones behind a number, in the order of their ids: `id`; `since`, which grows with the id; `at`, their own age, null while they
   * may still grow; `is_open`, 1 for what belongs to a task that has not ended.
   */
  readonly next: (after: number, limit: number) => Statement
  remove(ids: readonly number[]): Command<void>
}

export const oldRecords: readonly OldRecords[] = [
  rowsOf('events', 1_000, 'events.task_id'),
  rowsOf('activity', 500, 'activity.task_id'),
  rowsOf('sessions', 500, '(SELECT task_id FROM runs WHERE runs.id = sessions.run_id)'),
  rowsOf('hostd_calls', 100, 'hostd_calls.task_id'),
  {
    name: 'logs',
    atOnce: 10,
    next: (after, limit) => [`WITH RECURSIVE ${firstOfEach('run_logs')} ${runsIn}`, [after, limit]],
    *remove(ids) {
      yield [`DELETE FROM run_logs WHERE run_id IN (${marks(ids)})`, ids]
      yield [`UPDATE runs SET log_bytes = 0, log_truncated = 1 WHERE id IN (${marks(ids)})`, ids]
    },
  },
  {
    name: 'artifacts',
    atOnce: 10,
    next: (after, limit) => [`WITH RECURSIVE ${firstOfEach('artifacts')} ${runsIn}`, [after, limit]],
    *remove(ids) {
      yield [`DELETE FROM artifacts WHERE run_id IN (${marks(ids)})`, ids]
    },
  },
]

function isOpen(taskId: string): string {
  return `(SELECT COUNT(*) FROM tasks WHERE tasks.id = ${taskId} AND tasks.ended_at IS NULL) AS is_open`
}

function rowsOf(table: string, atOnce: number, taskId: string): OldRecords {
  return {
    name: table,
    atOnce,
    next: (after, limit) => [
      `SELECT id, at AS since, at, ${isOpen(taskId)} FROM ${table} WHERE id > ? ORDER BY id LIMIT ?`,
      [after, limit],
    ],
    *remove(ids) {
      yield [`DELETE FROM ${table} WHERE id IN (${marks(ids)})`, ids]
    },
  }
}

/** The runs that have rows in the table, each once, without reading all their rows: from the first row of one run to that of the next. */
function firstOfEach(table: string): string {
  const behind = (run: string) => `(SELECT MIN(run_id) FROM ${table} WHERE run_id > ${run})`
  return `found(run_id) AS (SELECT ${behind('?')} UNION ALL SELECT ${behind('found.run_id')} FROM found WHERE found.run_id IS NOT NULL)`
}

const runsIn = `SELECT runs.id, runs.began_at AS since, runs.ended_at AS at, ${isOpen('runs.task_id')}
  FROM (SELECT run_id FROM found LIMIT ?) AS chosen JOIN runs ON runs.id = chosen.run_id ORDER BY runs.id`
