/** Reads runs as they travel, appends to their logs, and reads ranges of them. */

import { assertSelf, type Caller } from '../../contract/caller.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import { type ListedRun, type Run, run } from '../../contract/run-shapes.ts'
import type { Command, Row } from '../../contract/store-port.ts'
import { first, flag, idOf, int, marks, numberOf, objectOrNull, type PlaneContext, text, textOrNull, time, timeOrNull } from '../command.ts'
import { lockLease } from '../tasks/lease.ts'

const mostLogBytes = 8_388_608
const mostPieceBytes = 1_048_576
const mostReadBytes = 1_048_576

type LogState = { readonly log_bytes: number; readonly log_truncated: boolean }
type Appending = Access & { readonly at: number; readonly piece: string }

/**
 * Stores what lies behind the end of the log, so a piece that comes twice, or again and longer, is stored once. What comes after the first
 * 8 MiB is dropped, and the log is marked. @throws PlaneRefusal conflict for a gap, with the byte to go on from; too_large
 */
export function* appendLog(context: PlaneContext, appending: Appending): Command<LogState> {
  if (!Number.isSafeInteger(appending.at) || appending.at < 0)
    throw new PlaneRefusal('bad_request', `"at" is the byte where the piece begins, from 0 on; this one is ${appending.at}`)
  const row = yield* lockRun(context, appending)
  const bytes = Buffer.from(appending.piece.toWellFormed(), 'utf8')
  if (bytes.length > mostPieceBytes)
    throw new PlaneRefusal('too_large', `a piece of a log has at most ${mostPieceBytes} bytes; this one has ${bytes.length}`)
  const end = int(row, 'log_bytes')
  if (flag(row, 'log_truncated')) return { log_bytes: end, log_truncated: true }
  if (appending.at > end)
    throw new PlaneRefusal('conflict', `the log has ${end} bytes and this piece begins at ${appending.at}; send what is missing first`, {
      log_bytes: end,
    })
  return yield* store(context, row, bytes.subarray(end - appending.at))
}

function* store(context: PlaneContext, row: Row, bytes: Uint8Array): Command<LogState> {
  const [run, end] = [int(row, 'id'), int(row, 'log_bytes')]
  if (bytes.length === 0) return { log_bytes: end, log_truncated: false }
  const kept = bytes.subarray(0, mostLogBytes - end)
  const isTruncated = kept.length < bytes.length
  if (kept.length > 0) yield* writePiece({ run, end, bytes: kept })
  yield ['UPDATE runs SET log_bytes = ?, log_truncated = ? WHERE id = ?', [end + kept.length, isTruncated ? 1 : 0, run]]
  yield* context.store.announce(logTopic(run))
  return { log_bytes: end + kept.length, log_truncated: isTruncated }
}

type Reading = Access & { readonly from: number; readonly to: number }

/** At most 1 MiB at once; behind the end there are no bytes. */
export function* readLog({ from, to, ...access }: Reading): Command<{ readonly bytes: Uint8Array; readonly total: number }> {
  const row = yield* ownRun(access)
  const total = int(row, 'log_bytes')
  const last = Math.min(to, total, from + mostReadBytes)
  if (last <= from) return { bytes: new Uint8Array(), total }
  return { bytes: yield* readPieces({ run: int(row, 'id'), from, to: last }), total }
}

/** Wakes those who read the log of this run. Logs grow too often to record each growth as an event. */
function logTopic(run: number): string {
  return `log:${run}`
}

type Growing = { readonly access: Access; readonly from: number; readonly signal: AbortSignal }

/** Resolves once the log is longer than `from`, the run has ended, or the signal aborts. */
export async function logGrows({ store }: Pick<PlaneContext, 'store'>, { access, from, signal }: Growing): Promise<void> {
  const row = await store.read(() => ownRun(access))
  const heard = announcements(store, logTopic(int(row, 'id')), signal)
  try {
    while (!signal.aborted) {
      const turn = heard.next()
      const now = await store.read(() => ownRun(access))
      if (int(now, 'log_bytes') > from || text(now, 'state') !== 'running') return
      await turn
    }
  } finally {
    heard.end()
  }
}

type Announcements = { readonly next: () => Promise<void>; readonly end: () => void }

/** `next` resolves with the next announcement, or when the signal aborts. */
function announcements(store: PlaneContext['store'], topic: string, signal: AbortSignal): Announcements {
  const state: { turn: PromiseWithResolvers<void> } = { turn: Promise.withResolvers() }
  const tell = () => state.turn.resolve()
  const stop = store.listen(topic, tell)
  signal.addEventListener('abort', tell)
  return {
    next() {
      if (!signal.aborted) state.turn = Promise.withResolvers()
      return state.turn.promise
    },
    end() {
      stop()
      signal.removeEventListener('abort', tell)
    },
  }
}

/**
 * Text as it is, behind a "t"; bytes that are not UTF-8, for example half of a character at the end of a piece, or that have a NUL, which
 * PostgreSQL keeps in no text, as base64 behind a "b".
 */
function storedPiece(bytes: Uint8Array): string {
  const asText = Buffer.from(bytes).toString('utf8')
  const isText = !asText.includes('\0') && Buffer.from(asText, 'utf8').equals(bytes)
  return isText ? `t${asText}` : `b${Buffer.from(bytes).toString('base64')}`
}

function bytesOfPiece(stored: string): Uint8Array {
  return Buffer.from(stored.slice(1), stored.startsWith('b') ? 'base64' : 'utf8')
}

/** A piece grows up to this, so that a program that prints single characters does not make a row of each. */
const smallBytes = 8_192

/** Appends at the end of the log, which is byte `end`. */
function* writePiece({ run, end, bytes }: { readonly run: number; readonly end: number; readonly bytes: Uint8Array }): Command<void> {
  const last = yield* first('SELECT at_byte, piece FROM run_logs WHERE run_id = ? ORDER BY at_byte DESC LIMIT 1', [run])
  if (last && end - int(last, 'at_byte') + bytes.length <= smallBytes) {
    const grown = Buffer.concat([bytesOfPiece(text(last, 'piece')), bytes])
    yield ['UPDATE run_logs SET piece = ? WHERE run_id = ? AND at_byte = ?', [storedPiece(grown), run, int(last, 'at_byte')]]
  } else yield ['INSERT INTO run_logs (run_id, at_byte, piece) VALUES (?, ?, ?)', [run, end, storedPiece(bytes)]]
}

/** The bytes of a log from `from` up to and without `to`. */
function* readPieces({ run, from, to }: { readonly run: number; readonly from: number; readonly to: number }): Command<Uint8Array> {
  const rows = yield [
    `SELECT at_byte, piece FROM run_logs WHERE run_id = ? AND at_byte < ?
      AND at_byte >= COALESCE((SELECT MAX(at_byte) FROM run_logs WHERE run_id = ? AND at_byte <= ?), 0) ORDER BY at_byte`,
    [run, to, run, from],
  ]
  return Buffer.concat(rows.map((row) => cut(row, { from, to })))
}

function cut(row: Row, { from, to }: { readonly from: number; readonly to: number }): Uint8Array {
  const at = int(row, 'at_byte')
  return bytesOfPiece(text(row, 'piece')).subarray(Math.max(0, from - at), Math.max(0, to - at))
}

const listed = `runs.id, runs.task_id, runs.agent_id, runs.role, runs.attempt, runs.state, runs.began_at, runs.ended_at, runs.last_beat_at, runs.tokens_used,
  runs.skill, runs.error, runs.log_bytes, runs.log_truncated, runs.changes, CASE WHEN runs.manifest IS NULL THEN 0 ELSE 1 END AS has_manifest, tasks.title AS task_title`
const withTitle = 'FROM runs JOIN tasks ON tasks.id = runs.task_id'

/** Reads runs as they travel. `where` and `params` come from our own code. */
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
