/** Serves runs: their state, logs, artifacts and session lines, and the receipts of hostd calls. */

import { atEnd } from '../../kit/errors.ts'
import { sha256 } from '../../kit/sha256.ts'
import { assertSelf, type Caller, signatureOf } from '../contract/caller.ts'
import type { Plane, RunPlane } from '../contract/plane.ts'
import { PlaneRefusal } from '../contract/plane-refusal.ts'
import { type ListedRun, type Run, type RunQuery, run, type SessionLine, sessionLine } from '../contract/run-shapes.ts'
import type { Command, Row } from '../contract/store-port.ts'
import {
  flag,
  idOf,
  int,
  marks,
  nextId,
  numberOf,
  objectOrNull,
  type PlaneContext,
  queryNumber,
  queryOne,
  text,
  textOrNull,
  time,
  timeOrNull,
  whereOf,
} from './command.ts'
import { recordEvent } from './events.ts'
import { lockLease } from './tasks/task-change.ts'

export function createRunPlane(context: PlaneContext): RunPlane {
  const { store } = context
  return {
    get: async (caller, id) => await store.read(() => getRun(caller, id)),
    list: async (caller, query) => await store.read(() => listRuns(caller, query)),
    appendLog: async (caller, id, at, piece) =>
      await store.write(() => appendLog(context, { caller, id, at, piece, what: 'write its log' })),
    log: async (caller, id, from, to) => await store.read(() => readLog({ caller, id, from, to, what: 'read its log' })),
    logGrows: async (caller, id, from, signal) => await logGrows(context, { access: { caller, id, what: 'read its log' }, from, signal }),
    deliver: async (caller, id, delivery) =>
      await store.write(() => deliverRun(context, { caller, id, delivery, what: 'deliver its results' })),
    putArtifact: async (caller, id, artifact) =>
      await store.write(() => putArtifact(context, { caller, id, artifact, what: 'deliver artifacts' })),
    artifact: async (caller, id, name) => await store.read(() => readArtifact({ caller, id, name, what: 'read its artifacts' })),
    async addSession(caller, agentId, line) {
      assertSelf(caller, agentId, 'write its session')
      await store.write(() => addSessionLine(context, { caller, agentId, line }))
    },
    async sessions(caller, agentId, limit) {
      assertSelf(caller, agentId, 'read its session')
      return await store.read(() => readSessionLines(agentId, limit))
    },
  }
}

function* getRun(caller: Caller, id: string) {
  yield* ownRun({ caller, id, what: 'read its runs' })
  return yield* readRun(id)
}

/** Lists runs, the newest first. An agent and its runs see their own. */
function* listRuns(caller: Caller, { task_id, agent_id, state, limit, after }: RunQuery): Command<Awaited<ReturnType<RunPlane['list']>>> {
  if (caller.kind === 'seed')
    throw new PlaneRefusal('forbidden', 'the shared secret does not read runs; use an operator token or an agent key')
  if (agent_id !== undefined) assertSelf(caller, agent_id, 'list its runs')
  const agentId = caller.kind === 'operator' ? agent_id : caller.id
  const [where, params] = whereOf([
    ['runs.task_id = ?', task_id === undefined ? undefined : numberOf(task_id)],
    ['runs.agent_id = ?', agentId],
    ['runs.state = ?', state],
    ['runs.id < ?', after === undefined ? undefined : numberOf(after)],
  ])
  const rows = yield* withArtifacts(yield [`SELECT ${listed} ${withTitle} ${where} ORDER BY runs.id DESC LIMIT ?`, [...params, limit + 1]])
  const runs = rows.slice(0, limit)
  return { runs, next: rows.length > limit ? (runs.at(-1)?.run_id ?? null) : null }
}

type Delivery = Parameters<RunPlane['deliver']>[2]

const mostManifestCharacters = 262_144

/** Stores what the worker delivers; absent fields keep their value. @throws PlaneRefusal not_found, forbidden, lease_lost, too_large */
function* deliverRun(context: PlaneContext, { delivery, ...access }: RunAccess & { readonly delivery: Delivery }): Command<Run> {
  const row = yield* lockRun(context, access)
  const { manifest, changes, skill } = delivery
  const written = manifest === undefined ? null : JSON.stringify(manifest)
  if (written !== null && written.length > mostManifestCharacters)
    throw new PlaneRefusal('too_large', `a manifest has at most 256 KiB; this one has ${written.length} characters`)
  yield [
    'UPDATE runs SET manifest = COALESCE(?, manifest), changes = COALESCE(?, changes), skill = COALESCE(?, skill) WHERE id = ?',
    [written, changes ?? null, skill ?? null, int(row, 'id')],
  ]
  yield* recordEvent(context, {
    ...{ type: 'run.delivered', actor: signatureOf(access.caller), taskId: int(row, 'task_id'), runId: int(row, 'id') },
    ...{ agentId: text(row, 'agent_id'), role: text(row, 'role') },
    data: { manifest: manifest !== undefined, changes, skill: skill || undefined },
  })
  return yield* readRun(access.id)
}

const mostBytes = 1_048_576
const mostOfRun = 16
const namePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/

type NewArtifact = { readonly name: string; readonly digest: string; readonly body: string }

/**
 * Stores an artifact, which never changes afterwards. @throws PlaneRefusal bad_request, too_large, too_many; conflict for another content
 * under the same name
 */
function* putArtifact(
  context: PlaneContext,
  { artifact, ...access }: RunAccess & { readonly artifact: NewArtifact },
): Command<Awaited<ReturnType<RunPlane['putArtifact']>>> {
  const bytes = checkedBytes(artifact)
  const run = int(yield* lockRun(context, access), 'id')
  const { name, digest, body } = artifact
  const existing = yield* queryOne('SELECT digest FROM artifacts WHERE run_id = ? AND name = ?', [run, name])
  if (existing && text(existing, 'digest') !== digest)
    throw new PlaneRefusal(
      'conflict',
      `"${name}" was delivered with other content (sha256 ${text(existing, 'digest')}); give this one another name`,
    )
  if (!existing) {
    const count = yield* queryNumber('SELECT COUNT(*) AS value FROM artifacts WHERE run_id = ?', [run])
    if (count >= mostOfRun) throw new PlaneRefusal('too_many', `a run has at most ${mostOfRun} artifacts`)
    yield ['INSERT INTO artifacts (run_id, name, digest, bytes, body) VALUES (?, ?, ?, ?, ?)', [run, name, digest, bytes, body]]
  }
  return { name, digest, bytes }
}

function checkedBytes({ name, digest, body }: NewArtifact): number {
  if (!namePattern.test(name))
    throw new PlaneRefusal(
      'bad_request',
      `an artifact's name is 1 to 128 letters, digits, ".", "_" or "-", and begins with a letter or digit`,
    )
  const bytes = Buffer.from(body, 'base64')
  if (bytes.toString('base64') !== body) throw new PlaneRefusal('bad_request', `the content of "${name}" is not base64`)
  if (bytes.length > mostBytes) throw new PlaneRefusal('too_large', `an artifact has at most 1 MiB; "${name}" has ${bytes.length} bytes`)
  const actual = sha256(bytes)
  if (actual !== digest)
    throw new PlaneRefusal('bad_request', `the content of "${name}" has the digest ${actual}, not the one in the request; send it again`)
  return bytes.length
}

/** @throws PlaneRefusal not_found, forbidden */
function* readArtifact({ name, ...access }: RunAccess & { readonly name: string }): Command<{ digest: string; body: string }> {
  yield* ownRun(access)
  const row: Row | undefined = yield* queryOne('SELECT digest, body FROM artifacts WHERE run_id = ? AND name = ?', [
    numberOf(access.id),
    name,
  ])
  if (!row) throw new PlaneRefusal('not_found', `${access.id} has no artifact "${name}"`)
  return { digest: text(row, 'digest'), body: text(row, 'body') }
}

type NewLine = { readonly caller: Caller; readonly agentId: string; readonly line: SessionLine }

/** The agent's own file has all lines; these show what it did lately, however much it writes. */
const mostOfAgent = 1_000

/** Keeps the last 1,000 lines of an agent. The next run reads them, so a run adds none after its lease. @throws PlaneRefusal lease_lost */
function* addSessionLine(context: PlaneContext, { caller, agentId, line }: NewLine): Command<void> {
  if (caller.kind === 'run') yield* lockLease(context, caller, caller.taskId)
  const { timestamp, task, skill, outcome, tokens_used } = line
  const run = caller.kind === 'run' ? numberOf(caller.runId) : null
  const id = yield* nextId('sessions')
  yield [
    'INSERT INTO sessions (id, agent_id, run_id, at, line) VALUES (?, ?, ?, ?, ?)',
    [id, agentId, run, context.now(), JSON.stringify({ timestamp, task, skill, outcome, tokens_used })],
  ]
  yield [
    'DELETE FROM sessions WHERE agent_id = ? AND id <= (SELECT id FROM sessions WHERE agent_id = ? ORDER BY id DESC LIMIT 1 OFFSET ?)',
    [agentId, agentId, mostOfAgent],
  ]
}

/** Returns the last `limit` lines, oldest first. */
function* readSessionLines(agentId: string, limit: number): Command<readonly SessionLine[]> {
  const rows = yield ['SELECT line FROM sessions WHERE agent_id = ? ORDER BY id DESC LIMIT ?', [agentId, limit]]
  return rows.map((row) => sessionLine.parse(JSON.parse(text(row, 'line')))).reverse()
}

const mostOutput = 65_536

type HostdCall = Parameters<Plane['noteHostd']>[1]

/** Keeps a receipt of each hostd operation that the plane passed on. */
export async function noteHostd(context: PlaneContext, caller: Caller, call: HostdCall): Promise<void> {
  await context.store.write(() => storeCall(context, caller, call))
}

function* storeCall(context: PlaneContext, caller: Caller, call: HostdCall): Command<void> {
  const id = yield* nextId('hostd_calls')
  const taskId = caller.kind === 'run' ? numberOf(caller.taskId) : null
  const { op, params, ok, exitCode, output } = call
  // PostgreSQL stores no NUL in a text.
  const stored = output.slice(0, mostOutput).replaceAll('\0', '\u{fffd}').toWellFormed()
  yield [
    'INSERT INTO hostd_calls (id, at, op, params, caller, ok, exit_code, output, task_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)',
    [id, context.now(), op, JSON.stringify(params), signatureOf(caller), ok ? 1 : 0, exitCode, stored, taskId],
  ]
  yield* recordEvent(context, {
    type: 'hostd.called',
    actor: signatureOf(caller),
    taskId,
    runId: caller.kind === 'run' ? numberOf(caller.runId) : null,
    agentId: caller.kind === 'run' || caller.kind === 'agent' ? caller.id : null,
    role: caller.kind === 'run' || caller.kind === 'agent' ? caller.role : null,
    data: { hostd_call: id, op, params, ok, exit_code: exitCode },
  })
}

const mostLogBytes = 8_388_608
const mostPieceBytes = 1_048_576
const mostReadBytes = 1_048_576

type LogState = { readonly log_bytes: number; readonly log_truncated: boolean }
type LogAppend = RunAccess & { readonly at: number; readonly piece: string }

/**
 * Stores what lies behind the end of the log, so a piece that arrives twice, or again and longer, is stored once. The plane drops what
 * exceeds 8 MiB and marks the log. @throws PlaneRefusal conflict for a gap, with the byte to continue from; too_large
 */
function* appendLog(context: PlaneContext, appending: LogAppend): Command<LogState> {
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
  const stored = bytes.subarray(0, mostLogBytes - end)
  const isTruncated = stored.length < bytes.length
  if (stored.length > 0) yield* writePiece({ run, end, bytes: stored })
  yield ['UPDATE runs SET log_bytes = ?, log_truncated = ? WHERE id = ?', [end + stored.length, isTruncated ? 1 : 0, run]]
  yield* context.store.announce(logTopic(run))
  return { log_bytes: end + stored.length, log_truncated: isTruncated }
}

type LogRange = RunAccess & { readonly from: number; readonly to: number }

/** Reads at most 1 MiB at once; behind the end there are no bytes. */
function* readLog({ from, to, ...access }: LogRange): Command<{ readonly bytes: Uint8Array; readonly total: number }> {
  const row = yield* ownRun(access)
  const total = int(row, 'log_bytes')
  const last = Math.min(to, total, from + mostReadBytes)
  if (last <= from) return { bytes: new Uint8Array(), total }
  return { bytes: yield* readPieces({ run: int(row, 'id'), from, to: last }), total }
}

/** Names the topic that wakes readers of this run's log. Logs grow too often to record an event each time. */
function logTopic(run: number): string {
  return `log:${run}`
}

type LogWait = { readonly access: RunAccess; readonly from: number; readonly signal: AbortSignal }

/** Resolves once the log is longer than `from`, the run has ended, or the signal aborts. */
async function logGrows({ store }: Pick<PlaneContext, 'store'>, { access, from, signal }: LogWait): Promise<void> {
  const row = await store.read(() => ownRun(access))
  const announced = { next: Promise.withResolvers<void>() }
  const notify = () => announced.next.resolve()
  const stop = store.listen(logTopic(int(row, 'id')), notify)
  signal.addEventListener('abort', notify)
  using _end = atEnd(() => {
    stop()
    signal.removeEventListener('abort', notify)
  })
  while (!signal.aborted) {
    announced.next = Promise.withResolvers()
    const now = await store.read(() => ownRun(access))
    if (int(now, 'log_bytes') > from || text(now, 'state') !== 'running' || signal.aborted) return
    await announced.next.promise
  }
}

/**
 * Encodes text as it is behind a "t". Bytes that are not UTF-8, such as half of a character at the end of a piece, or that have a NUL, which
 * PostgreSQL stores in no text, become base64 behind a "b".
 */
function storedPiece(bytes: Uint8Array): string {
  const asText = Buffer.from(bytes).toString('utf8')
  const isText = !asText.includes('\0') && Buffer.from(asText, 'utf8').equals(bytes)
  return isText ? `t${asText}` : `b${Buffer.from(bytes).toString('base64')}`
}

function bytesOfPiece(stored: string): Uint8Array {
  return Buffer.from(stored.slice(1), stored.startsWith('b') ? 'base64' : 'utf8')
}

/** A piece grows up to this size, so that a program that prints single characters does not create a row for each. */
const smallBytes = 8_192

/** Appends at the end of the log, which is byte `end`. */
function* writePiece({ run, end, bytes }: { readonly run: number; readonly end: number; readonly bytes: Uint8Array }): Command<void> {
  const last = yield* queryOne('SELECT at_byte, piece FROM run_logs WHERE run_id = ? ORDER BY at_byte DESC LIMIT 1', [run])
  if (last && end - int(last, 'at_byte') + bytes.length <= smallBytes) {
    const grown = Buffer.concat([bytesOfPiece(text(last, 'piece')), bytes])
    yield ['UPDATE run_logs SET piece = ? WHERE run_id = ? AND at_byte = ?', [storedPiece(grown), run, int(last, 'at_byte')]]
  } else yield ['INSERT INTO run_logs (run_id, at_byte, piece) VALUES (?, ?, ?)', [run, end, storedPiece(bytes)]]
}

/** Reads the bytes from `from` up to and without `to`. */
function* readPieces({ run, from, to }: { readonly run: number; readonly from: number; readonly to: number }): Command<Uint8Array> {
  const rows = yield [
    `SELECT at_byte, piece FROM run_logs WHERE run_id = ? AND at_byte < ?
      AND at_byte >= COALESCE((SELECT MAX(at_byte) FROM run_logs WHERE run_id = ? AND at_byte <= ?), 0) ORDER BY at_byte`,
    [run, to, run, from],
  ]
  return Buffer.concat(rows.map((row) => cutPiece(row, { from, to })))
}

function cutPiece(row: Row, { from, to }: { readonly from: number; readonly to: number }): Uint8Array {
  const at = int(row, 'at_byte')
  return bytesOfPiece(text(row, 'piece')).subarray(Math.max(0, from - at), Math.max(0, to - at))
}

const listed = `runs.id, runs.task_id, runs.agent_id, runs.role, runs.attempt, runs.state, runs.began_at, runs.ended_at, runs.last_beat_at, runs.tokens_used,
  runs.skill, runs.error, runs.log_bytes, runs.log_truncated, runs.changes, CASE WHEN runs.manifest IS NULL THEN 0 ELSE 1 END AS has_manifest, tasks.title AS task_title`
const withTitle = 'FROM runs JOIN tasks ON tasks.id = runs.task_id'

/** Returns runs as the API sends them. */
function* withArtifacts(rows: readonly Row[]): Command<readonly ListedRun[]> {
  const ids = rows.map((row) => int(row, 'id'))
  const artifacts =
    ids.length === 0 ? [] : yield [`SELECT run_id, name, digest, bytes FROM artifacts WHERE run_id IN (${marks(ids)}) ORDER BY name`, ids]
  const byRun = Map.groupBy(artifacts, (row) => int(row, 'run_id'))
  return rows.map((row) => runOf(row, byRun.get(int(row, 'id')) ?? []))
}

/** @throws PlaneRefusal not_found */
function* readRun(id: string): Command<Run> {
  const row = yield* queryOne(`SELECT ${listed}, runs.manifest ${withTitle} WHERE runs.id = ?`, [numberOf(id)])
  const [listedRun] = row ? yield* withArtifacts([row]) : []
  if (!row || !listedRun) throw noRun(id)
  return { ...listedRun, manifest: objectOrNull(row, 'manifest') }
}

function noRun(id: string): PlaneRefusal {
  return new PlaneRefusal('not_found', `the run ${id} does not exist`)
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

type RunAccess = { readonly caller: Caller; readonly id: string; readonly what: string }

/** Reads a run for an operator or the agent of the run. @throws PlaneRefusal not_found, forbidden */
function* ownRun({ caller, id, what }: RunAccess, lock = ''): Command<Row> {
  const row = yield* queryOne(`SELECT * FROM runs WHERE id = ?${lock}`, [numberOf(id)])
  if (!row) throw noRun(id)
  assertSelf(caller, text(row, 'agent_id'), what)
  return row
}

/**
 * Locks a run for a write. A run token writes to its own run while its lease is in force; an agent's key also afterwards, because its worker
 * delivers what the runner left. @throws PlaneRefusal not_found, forbidden, lease_lost
 */
function* lockRun(context: PlaneContext, { caller, id, what }: RunAccess): Command<Row> {
  if (caller.kind === 'run') {
    if (numberOf(caller.runId) !== numberOf(id)) throw new PlaneRefusal('forbidden', `this run token is for ${caller.runId}, not for ${id}`)
    yield* lockLease(context, caller, caller.taskId)
  }
  return yield* ownRun({ caller, id, what }, context.dialect.forUpdate)
}
