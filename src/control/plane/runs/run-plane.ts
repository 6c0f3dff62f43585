/** Serves runs: what they are, their logs, artifacts and session lines. */

import { sha256 } from '../../../kit/sha256.ts'
import { assertSelf, type Caller, signatureOf } from '../../contract/caller.ts'
import type { Plane, RunPlane } from '../../contract/plane.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import { type Run, type RunQuery, type SessionLine, sessionLine } from '../../contract/run-shapes.ts'
import type { Command, Row } from '../../contract/store-port.ts'
import { amount, first, int, nextId, numberOf, type PlaneContext, text } from '../command.ts'
import { recordEvent } from '../events/record-event.ts'
import { lockLease } from '../tasks/lease.ts'
import { type Access, appendLog, lockRun, logGrows, ownRun, readLog, readRun, readRuns } from './run-log.ts'

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

type Listed = Awaited<ReturnType<RunPlane['list']>>

/** Newest first. An agent and its runs see their own. */
function* listRuns(caller: Caller, { task_id, agent_id, state, limit, after }: RunQuery): Command<Listed> {
  if (caller.kind === 'seed')
    throw new PlaneRefusal('forbidden', 'the shared secret does not read runs; use an operator token or an agent key')
  if (agent_id !== undefined) assertSelf(caller, agent_id, 'list its runs')
  const agentId = caller.kind === 'operator' ? agent_id : caller.id
  const conditions: readonly (readonly [string, string | number | undefined])[] = [
    ['runs.task_id = ?', task_id === undefined ? undefined : numberOf(task_id)],
    ['runs.agent_id = ?', agentId],
    ['runs.state = ?', state],
    ['runs.id < ?', after === undefined ? undefined : numberOf(after)],
  ]
  const given = conditions.flatMap(([text, value]) => (value === undefined ? [] : [[text, value] as const]))
  const where = given.length === 0 ? '' : `WHERE ${given.map(([text]) => text).join(' AND ')}`
  const found = yield* readRuns(`${where} ORDER BY runs.id DESC LIMIT ?`, [...given.map(([, value]) => value), limit + 1])
  const runs = found.slice(0, limit)
  return { runs, next: found.length > limit ? (runs.at(-1)?.run_id ?? null) : null }
}

type Delivery = Parameters<RunPlane['deliver']>[2]

const mostManifestCharacters = 262_144

/** Absent fields keep their value. @throws PlaneRefusal not_found, forbidden, lease_lost, too_large */
function* deliverRun(context: PlaneContext, { delivery, ...access }: Access & { readonly delivery: Delivery }): Command<Run> {
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
    data: { manifest: manifest !== undefined, ...(changes ? { changes } : {}), ...(skill ? { skill } : {}) },
  })
  return yield* readRun(access.id)
}

const mostBytes = 1_048_576
const mostOfRun = 16
const namePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/

type NewArtifact = { readonly name: string; readonly digest: string; readonly body: string }
type KeptArtifact = { readonly name: string; readonly digest: string; readonly bytes: number }

/** An artifact that is stored never changes. @throws PlaneRefusal bad_request, too_large, too_many; conflict for another content under the same name */
function* putArtifact(context: PlaneContext, { artifact, ...access }: Access & { readonly artifact: NewArtifact }): Command<KeptArtifact> {
  const bytes = checkedBytes(artifact)
  const run = int(yield* lockRun(context, access), 'id')
  const { name, digest, body } = artifact
  const known = yield* first('SELECT digest FROM artifacts WHERE run_id = ? AND name = ?', [run, name])
  if (known && text(known, 'digest') !== digest)
    throw new PlaneRefusal(
      'conflict',
      `"${name}" was delivered with other content (sha256 ${text(known, 'digest')}); give this one another name`,
    )
  if (!known) {
    yield* assertRoom(run)
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
  const found = sha256(bytes)
  if (found !== digest)
    throw new PlaneRefusal('bad_request', `the content of "${name}" has the digest ${found}, not the one that was given; send it again`)
  return bytes.length
}

function* assertRoom(run: number): Command<void> {
  const count = yield* amount('SELECT COUNT(*) AS value FROM artifacts WHERE run_id = ?', [run])
  if (count >= mostOfRun) throw new PlaneRefusal('too_many', `a run has at most ${mostOfRun} artifacts`)
}

/** @throws PlaneRefusal not_found, forbidden */
function* readArtifact({ name, ...access }: Access & { readonly name: string }): Command<{ digest: string; body: string }> {
  yield* ownRun(access)
  const row: Row | undefined = yield* first('SELECT digest, body FROM artifacts WHERE run_id = ? AND name = ?', [numberOf(access.id), name])
  if (!row) throw new PlaneRefusal('not_found', `${access.id} has no artifact "${name}"`)
  return { digest: text(row, 'digest'), body: text(row, 'body') }
}

type NewLine = { readonly caller: Caller; readonly agentId: string; readonly line: SessionLine }

/** Its own file has all of them; here the last ones answer what an agent did lately, however much it writes. */
const mostOfAgent = 1_000

/** Keeps the last 1,000 lines of an agent. The next run reads them, so a run adds none once its lease is over. @throws PlaneRefusal lease_lost */
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

/** The last `limit`, oldest first. */
function* readSessionLines(agentId: string, limit: number): Command<readonly SessionLine[]> {
  const rows = yield ['SELECT line FROM sessions WHERE agent_id = ? ORDER BY id DESC LIMIT ?', [agentId, limit]]
  return rows.map((row) => sessionLine.parse(JSON.parse(text(row, 'line')))).reverse()
}

const mostOutput = 65_536

type Note = Plane['noteHostd']

/** Keeps a receipt of each hostd operation that was proxied. */
export async function noteHostd(context: PlaneContext, caller: Parameters<Note>[0], call: Parameters<Note>[1]): Promise<void> {
  await context.store.write(() => keepCall(context, { caller, call }))
}

function* keepCall(
  context: PlaneContext,
  { caller, call }: { readonly caller: Parameters<Note>[0]; readonly call: Parameters<Note>[1] },
): Command<void> {
  const id = yield* nextId('hostd_calls')
  const taskId = caller.kind === 'run' ? numberOf(caller.taskId) : null
  const { op, params, ok, exitCode, output } = call
  // PostgreSQL keeps no NUL in a text.
  const kept = output.slice(0, mostOutput).replaceAll('\0', '\u{fffd}').toWellFormed()
  yield [
    'INSERT INTO hostd_calls (id, at, op, params, caller, ok, exit_code, output, task_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)',
    [id, context.now(), op, JSON.stringify(params), signatureOf(caller), ok ? 1 : 0, exitCode, kept, taskId],
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
