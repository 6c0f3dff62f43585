/** Deletes what is older than the operator wants to keep: events, reports, session lines, hostd calls, and the logs and artifacts of ended runs. */

import type { Command, Row, Statement } from '../contract/store-port.ts'
import { int, intOrNull, marks, type PlaneContext, queryNumber, queryOne, text } from './command.ts'

const dayMs = 86_400_000
/** All daemons together prune at most once in this time. */
const pauseMs = 60_000
/** One pass takes this many steps for each kind: a backlog of years takes a few hours, and no command waits for it. */
const mostSteps = 20
/** A pass that takes longer does one step of each kind only, because the tick has other work. */
const mostMs = 250

/** Deletes records older than `retentionDays` of the options; 0 keeps everything. It keeps what belongs to an open task. */
export async function pruneOld(context: PlaneContext): Promise<void> {
  const { store, options, now } = context
  const days = options.retentionDays ?? 0
  if (days === 0 || !(await store.write(() => isOurTurn(context)))) return
  const [before, until] = [now() - days * dayMs, now() + mostMs]
  for (const records of oldRecords)
    for (let steps = 1; (await store.write(() => pruneSome(records, before))) && steps < mostSteps && now() < until; steps += 1);
}

function* isOurTurn(context: PlaneContext): Command<boolean> {
  const now = context.now()
  yield ["INSERT INTO settings (name, value) VALUES ('pruned_at', '0') ON CONFLICT (name) DO NOTHING"]
  const row = yield* queryOne(`SELECT value FROM settings WHERE name = 'pruned_at'${context.dialect.forUpdate}`)
  const last = Number(row ? text(row, 'value') : 0)
  // A clock that was set back must not stop the deletion for years.
  if (now - last < pauseMs && last <= now) return false
  yield ["UPDATE settings SET value = ? WHERE name = 'pruned_at'", [String(now)]]
  return true
}

/**
 * Continues behind the last step, and starts again from the beginning when nothing older is left, for records that had to stay. @returns
 * whether there is more
 */
function* pruneSome({ name, atOnce, next, remove }: OldRecords, before: number): Command<boolean> {
  const position = `pruned_${name}`
  const after = yield* queryNumber('SELECT CAST(value AS BIGINT) AS value FROM settings WHERE name = ?', [position])
  const rows = yield next(after, atOnce)
  const until = rows.findIndex((row) => int(row, 'since') >= before)
  const some = until < 0 ? rows : rows.slice(0, until)
  const ids = some.filter((row) => isDeletable(row, before)).map((row) => int(row, 'id'))
  if (ids.length > 0) yield* remove(ids)
  const last = some.length === atOnce ? some.at(-1) : undefined
  yield [
    'INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
    [position, String(last ? int(last, 'id') : 0)],
  ]
  return last !== undefined
}

function isDeletable(row: Row, before: number): boolean {
  const at = intOrNull(row, 'at')
  return at !== null && at < before && int(row, 'is_open') === 0
}

type OldRecords = {
  /** Names the setting that stores the progress. */
  readonly name: string
  /** Keeps a step so small that no command waits for it. */
  readonly atOnce: number
  /**
   * Reads the next records behind a number in the order of their ids: `id`; `since`, which grows with the id; `at`, their own age, null while
   * they may still grow; `is_open`, 1 for what belongs to an open task.
   */
  readonly next: (after: number, limit: number) => Statement
  remove(ids: readonly number[]): Command<void>
}

/** The ledger and the tasks stay for ever. */
const oldRecords: readonly OldRecords[] = [
  rowsOf('events', 1_000, 'events.task_id'),
  rowsOf('activity', 500, 'activity.task_id'),
  rowsOf('sessions', 500, '(SELECT task_id FROM runs WHERE runs.id = sessions.run_id)'),
  rowsOf('hostd_calls', 100, 'hostd_calls.task_id'),
  ofRuns('logs', 'run_logs', 'UPDATE runs SET log_bytes = 0, log_truncated = 1 WHERE id'),
  ofRuns('artifacts', 'artifacts'),
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

/** Deletes what a table has of ended runs; `besides` is the beginning of another change to these runs. */
function ofRuns(name: string, table: string, besides?: string): OldRecords {
  return {
    name,
    atOnce: 10,
    next: (after, limit) => [`WITH RECURSIVE ${firstOfEach(table)} ${runsIn}`, [after, limit]],
    *remove(ids) {
      yield [`DELETE FROM ${table} WHERE run_id IN (${marks(ids)})`, ids]
      if (besides) yield [`${besides} IN (${marks(ids)})`, ids]
    },
  }
}

/** Finds the runs that have rows in the table by stepping from the first row of one run to that of the next, without reading all rows. */
function firstOfEach(table: string): string {
  const behind = (run: string) => `(SELECT MIN(run_id) FROM ${table} WHERE run_id > ${run})`
  return `found(run_id) AS (SELECT ${behind('?')} UNION ALL SELECT ${behind('found.run_id')} FROM found WHERE found.run_id IS NOT NULL)`
}

const runsIn = `SELECT runs.id, runs.began_at AS since, runs.ended_at AS at, ${isOpen('runs.task_id')}
  FROM (SELECT run_id FROM found LIMIT ?) AS chosen JOIN runs ON runs.id = chosen.run_id ORDER BY runs.id`
