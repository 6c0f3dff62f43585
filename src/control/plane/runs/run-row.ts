/** Reads runs as they travel. */

import { assertSelf, type Caller } from '../../contract/caller.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import { type ListedRun, type Run, run } from '../../contract/run-shapes.ts'
import type { Command, Row } from '../../contract/store-port.ts'
import { first, flag, idOf, int, marks, numberOf, objectOrNull, type PlaneContext, text, textOrNull, time, timeOrNull } from '../command.ts'
import { lockLease } from '../tasks/lease.ts'

const listed = `runs.id, runs.task_id, runs.agent_id, runs.role, runs.attempt, runs.state, runs.began_at, runs.ended_at, runs.last_beat_at, runs.tokens_used,
  runs.skill, runs.error, runs.log_bytes, runs.log_truncated, runs.changes, CASE WHEN runs.manifest IS NULL THEN 0 ELSE 1 END AS has_manifest, tasks.title AS task_title`
const withTitle = 'FROM runs JOIN tasks ON tasks.id = runs.task_id'

/** `where` and `params` come from our own code. */
export function* readRuns(where: string, params: readonly (string | number)[]): Command<readonly ListedRun[]> {
  return yield* withArtifacts(yield [`SELECT ${listed} ${withTitle} ${where}`, params])
}

function* withArtifacts(rows: readonly Row[]): Command<readonly ListedRun[]> {
  const ids = rows.map((row) => int(row, 'id'))
  const artifacts =
    ids.length === 0 ? [] : yield [`SELECT run_id, name, digest, bytes FROM artifacts WHERE run_id IN (${marks(ids)}) ORDER BY name`, ids]
  const byRun = Map.groupBy(artifacts, (row) => int(row, 'run_id'))
  return rows.map((row) => runOf(row, byRun.get(int(row, 'id')) ?? []))
}

/** @throws PlaneRefusal not_found */
export function* readRun(id: string): Command<Run> {
  const row = yield* first(`SELECT ${listed}, runs.manifest ${withTitle} WHERE runs.id = ?`, [numberOf(id)])
  const [found] = row ? yield* withArtifacts([row]) : []
  if (!row || !found) throw noRun(id)
  return { ...found, manifest: objectOrNull(row, 'manifest') }
}

function noRun(id: string): PlaneRefusal {
  return new PlaneRefusal('not_found', `there is no run ${id}`)
}

function runOf(row: Row, artifacts: readonly Row[]): ListedRun {
  return {
    run_id: idOf('RUN', int(row, 'id')),
    task_id: idOf('TASK', int(row, 'task_id')),
    task_title: text(row, 'task_title'),
    agent_id: text(row, 'agent_id'),
    role: text(row, 'role'),
    attempt: int(row, 'attempt'),
    state: run.shape.state.parse(row.state),
    began_at: time(row, 'began_at'),
    ended_at: timeOrNull(row, 'ended_at'),
    last_beat_at: time(row, 'last_beat_at'),
    tokens_used: int(row, 'tokens_used'),
    skill: textOrNull(row, 'skill'),
    error: textOrNull(row, 'error'),
    log_bytes: int(row, 'log_bytes'),
    log_truncated: flag(row, 'log_truncated'),
    has_manifest: flag(row, 'has_manifest'),
    artifacts: artifacts.map((one) => ({ name: text(one, 'name'), digest: text(one, 'digest'), bytes: int(one, 'bytes') })),
    changes: run.shape.changes.parse(row.changes),
  }
}

export type Access = { readonly caller: Caller; readonly id: string; readonly what: string }

/** An operator, or the agent whose run it is. @throws PlaneRefusal not_found, forbidden */
export function* ownRun({ caller, id, what }: Access, lock = ''): Command<Row> {
  const row = yield* first(`SELECT * FROM runs WHERE id = ?${lock}`, [numberOf(id)])
  if (!row) throw noRun(id)
  assertSelf(caller, text(row, 'agent_id'), what)
  return row
}

/**
 * Locks a run for a write. A run token writes to its own run, while its lease is in force; an agent's key also afterwards, because its worker
 * delivers what the runner left. @throws PlaneRefusal not_found, forbidden, lease_lost
 */
export function* lockRun(context: PlaneContext, { caller, id, what }: Access): Command<Row> {
  if (caller.kind === 'run') {
    if (numberOf(caller.runId) !== numberOf(id)) throw new PlaneRefusal('forbidden', `this run token is for ${caller.runId}, not for ${id}`)
    yield* lockLease(context, caller, caller.taskId)
  }
  return yield* ownRun({ caller, id, what }, context.dialect.forUpdate)
}
