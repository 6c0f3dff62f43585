/** Serves the fleet: its agents and their keys. */

import { assertSelf, type Caller, onlyOperator, signatureOf } from '../contract/caller.ts'
import type { Agent, AgentDraft, AgentKey, AgentPatch, NewAgentKey } from '../contract/fleet-shapes.ts'
import type { FleetPlane } from '../contract/plane.ts'
import { PlaneRefusal } from '../contract/plane-refusal.ts'
import type { Command, Param, Row } from '../contract/store-port.ts'
import { newSecret, newSecretId, shownOnce } from './access-plane.ts'
import { currentDay } from './budget/limits.ts'
import {
  defined,
  flag,
  idOf,
  int,
  intOrNull,
  nextId,
  objectOrNull,
  type PlaneContext,
  queryOne,
  text,
  textOrNull,
  time,
  timeOrNull,
} from './command.ts'
import { recordEvent } from './events.ts'
import { wakeBlocked } from './spending.ts'
import { requeueTask } from './tasks/end-task.ts'
import { lockTask } from './tasks/task-change.ts'

export function createFleetPlane(context: PlaneContext): FleetPlane {
  const { store } = context

  /** Runs a change and returns the changed agent, in one transaction. */
  const changed = async (id: string, change: () => Command<void>): Promise<Agent> =>
    await store.write(function* (): Command<Agent> {
      yield* change()
      return yield* readAgent(context, id)
    })
  const actorOf = (caller: Caller, what: string) => signatureOf(onlyOperator(caller, what))
  const steered = async (caller: Caller, id: string, verb: string, change: AgentChange) => {
    const actor = actorOf(caller, `${verb} agents`)
    return await changed(id, () => steer(context, { actor, id }, change))
  }

  return {
    async list(caller) {
      onlyOperator(caller, 'list agents')
      return await store.read(() => readAgents(context))
    },
    async get(caller, id) {
      assertSelf(caller, id, 'read it')
      return await store.read(() => readAgent(context, id))
    },
    async add(caller, draft) {
      const actor = actorOf(caller, 'add agents')
      return await changed(draft.id, () => addAgent(context, { draft, actor }))
    },
    async edit(caller, id, patch) {
      const actor = actorOf(caller, 'edit agents')
      return await changed(id, () => editAgent(context, { actor, id, patch }))
    },
    async remove(caller, id) {
      const actor = actorOf(caller, 'remove agents')
      await store.write(() => removeAgent(context, { actor, id }))
    },
    // A paused agent gets no new task; its running task continues. To stop that one too, an operator cancels it.
    pause: (caller, id, reason) =>
      steered(caller, id, 'pause', { type: 'agent.paused', columns: () => ({ paused: 1, paused_reason: reason }), data: { reason } }),
    resume: (caller, id) => steered(caller, id, 'resume', { type: 'agent.resumed', columns: () => ({ paused: 0, paused_reason: null }) }),
    wake: (caller, id) => steered(caller, id, 'wake', { type: 'agent.woken', columns: (row) => ({ wakes: int(row, 'wakes') + 1 }) }),
    async report(caller, id, worker, receipts) {
      assertSelf(caller, id, 'report')
      return await changed(id, () => reportAgent(context, { id, worker, receipts }))
    },
    async keys(caller, id) {
      onlyOperator(caller, 'list keys')
      return await store.read(() => listKeys(id))
    },
    async newKey(caller, id, signal) {
      const key = { actor: actorOf(caller, 'make keys'), id, keyId: newSecretId(context, 'key') }
      return await shownOnce(context, { table: 'agent_keys', id: key.keyId, signal }, () => addKey(context, key))
    },
    async revokeKey(caller, id, keyId) {
      const actor = actorOf(caller, 'revoke keys')
      return await store.write(() => revokeKey(context, { actor, id, keyId }))
    },
    async rotateKey(caller, id, signal) {
      const key = { actor: actorOf(caller, 'rotate keys'), id, keyId: newSecretId(context, 'key') }
      return await shownOnce(context, { table: 'agent_keys', id: key.keyId, signal }, () => rotateKey(context, key))
    },
    async receipts(caller) {
      onlyOperator(caller, 'read the state of receipts')
      return await store.read(readReceipts)
    },
  }
}

function* readReceipts(): Command<Awaited<ReturnType<FleetPlane['receipts']>>> {
  const rows = yield ['SELECT id, receipts, last_seen_at FROM agents ORDER BY place']
  return rows.map((row) => {
    const receipts = objectOrNull(row, 'receipts')
    return { agent_id: text(row, 'id'), receipts, reported_at: receipts && timeOrNull(row, 'last_seen_at') }
  })
}

type By<T = unknown> = { readonly actor: string; readonly id: string } & T

function* addAgent(context: PlaneContext, { draft, actor }: { readonly draft: AgentDraft; readonly actor: string }): Command<void> {
  const { id, role, heartbeat_enabled, description, daily_tokens } = draft
  const place = yield* nextId('agents')
  const row = yield* queryOne(
    `INSERT INTO agents (id, role, heartbeat_enabled, description, daily_tokens, paused, wakes, created_at, place)
      VALUES (?, ?, ?, ?, ?, 0, 0, ?, ?) ON CONFLICT (id) DO NOTHING RETURNING id`,
    [id, role, heartbeat_enabled ? 1 : 0, description, daily_tokens, context.now(), place],
  )
  if (!row)
    throw new PlaneRefusal(
      'conflict',
      `there is an agent "${id}" already; "control agent edit" changes it, "control key new" makes a key for it`,
    )
  yield* recordEvent(context, { type: 'agent.added', actor, agentId: id, role })
}

/** Changes an agent. Running tasks keep the role under which they were claimed. */
function* editAgent(context: PlaneContext, { actor, id, patch }: By<{ readonly patch: AgentPatch }>): Command<void> {
  const before = yield* lockAgent(context, id)
  const { heartbeat_enabled: heartbeat } = patch
  const columns = { ...patch, heartbeat_enabled: heartbeat === undefined ? undefined : Number(heartbeat) }
  const row = yield* setColumns(id, columns)
  yield* recordEvent(context, { type: 'agent.changed', actor, agentId: id, role: text(row ?? before, 'role'), data: { ...patch } })
  if (patch.daily_tokens !== undefined) yield* wakeBlocked(context, actor)
}

/** Sets the columns that have a value. Their names come from our own code and from checked requests, never from outside. */
function* setColumns(id: string, columns: Readonly<Record<string, Param | undefined>>): Command<Row | undefined> {
  const present = Object.entries(defined(columns))
  if (present.length === 0) return undefined
  const sets = present.map(([name]) => `${name} = ?`).join(', ')
  return yield* queryOne(`UPDATE agents SET ${sets} WHERE id = ? RETURNING *`, [...present.map(([, value]) => value), id])
}

type AgentChange = { readonly type: string; readonly columns: (row: Row) => Record<string, Param>; readonly data?: Record<string, unknown> }

/** Changes an agent and wakes its waiting workers. */
function* steer(context: PlaneContext, { actor, id }: By, { type, columns, data }: AgentChange): Command<void> {
  const row = yield* lockAgent(context, id)
  yield* setColumns(id, columns(row))
  yield* recordEvent(context, { type, actor, agentId: id, role: text(row, 'role'), data })
  yield* context.store.announce('agents')
}

/** Releases its leases and deletes its keys; events, runs and the ledger keep what it did. */
function* removeAgent(context: PlaneContext, { actor, id }: By): Command<void> {
  yield* releaseLeases(context, { agentId: id, actor, why: `agent ${id} was removed` })
  const row = yield* lockAgent(context, id)
  yield ['DELETE FROM agent_keys WHERE agent_id = ?', [id]]
  yield ['DELETE FROM agents WHERE id = ?', [id]]
  yield* recordEvent(context, { type: 'agent.removed', actor, agentId: id, role: text(row, 'role') })
  yield* context.store.announce('agents')
}

const mostCharacters = 65_536
/** The page shows an agent as unseen after this time. */
const unseenMs = 120_000

type AgentReport = {
  readonly id: string
  readonly worker: Readonly<Record<string, unknown>>
  /** Absent receipts leave the last ones in place. */
  readonly receipts?: Readonly<Record<string, unknown>> | undefined
}

/** Stores the report. Workers report all the time, so it records an event only when the agent was unseen before. @throws PlaneRefusal not_found, too_large */
function* reportAgent(context: PlaneContext, { id, worker, receipts }: AgentReport): Command<void> {
  const agent = yield* queryOne('SELECT role, last_seen_at FROM agents WHERE id = ?', [id])
  if (!agent) throw noAgent(id)
  yield [
    'UPDATE agents SET last_seen_at = ?, worker = ?, receipts = COALESCE(?, receipts) WHERE id = ?',
    [context.now(), jsonOf('worker', worker), receipts === undefined ? null : jsonOf('receipts', receipts), id],
  ]
  const seenAt = intOrNull(agent, 'last_seen_at')
  if (seenAt !== null && context.now() - seenAt < unseenMs) return
  yield* recordEvent(context, { type: 'agent.seen', actor: `agent ${id}`, agentId: id, role: text(agent, 'role') })
}

function jsonOf(name: string, value: object): string {
  const json = JSON.stringify(value)
  if (json.length > mostCharacters)
    throw new PlaneRefusal('too_large', `"${name}" of a report has at most 64 KiB; this one has ${json.length} characters`)
  return json
}

/** Returns the tasks of an agent to the queue. The attempts do not count as failures. */
function* releaseLeases(
  context: PlaneContext,
  { agentId, actor, why }: { readonly agentId: string; readonly actor: string; readonly why: string },
): Command<number> {
  const runs = yield ["SELECT id, task_id FROM runs WHERE agent_id = ? AND state = 'running' ORDER BY task_id", [agentId]]
  let released = 0
  for (const run of runs) {
    const task = yield* lockTask(context, int(run, 'task_id'))
    if (task.status !== 'running' || int(task, 'run_id') !== int(run, 'id')) continue
    const again = { type: 'task.released', actor, availableAt: context.now(), failures: int(task, 'failures'), error: why }
    yield* requeueTask(context, task, { ...again, run: { state: 'released', error: why } })
    released += 1
  }
  return released
}

function* listKeys(agentId: string): Command<readonly AgentKey[]> {
  if (!(yield* queryOne('SELECT id FROM agents WHERE id = ?', [agentId]))) throw noAgent(agentId)
  return (yield ['SELECT * FROM agent_keys WHERE agent_id = ? ORDER BY created_at, id', [agentId]]).map(keyOf)
}

function keyOf(row: Row): AgentKey {
  return {
    key_id: text(row, 'id'),
    agent_id: text(row, 'agent_id'),
    created_at: time(row, 'created_at'),
    last_used_at: timeOrNull(row, 'last_used_at'),
    revoked_at: timeOrNull(row, 'revoked_at'),
  }
}

function* addKey(context: PlaneContext, { actor, id, keyId }: By<{ readonly keyId: string }>): Command<NewAgentKey> {
  const agent = yield* lockAgent(context, id)
  const { secret, digest } = newSecret(context, 'cpa')
  const row = yield* queryOne('INSERT INTO agent_keys (id, agent_id, digest, created_at) VALUES (?, ?, ?, ?) RETURNING *', [
    keyId,
    id,
    digest,
    context.now(),
  ])
  if (!row) throw new Error('INSERT … RETURNING answered no row')
  yield* recordEvent(context, { type: 'key.added', actor, agentId: id, role: text(agent, 'role'), data: { key_id: text(row, 'id') } })
  return { ...keyOf(row), key: secret }
}

/** Revokes a key and ends all leases of the agent, which a thief of the key may have. Revoking it again changes nothing. */
export function* revokeKey(context: PlaneContext, { actor, id, keyId }: By<{ readonly keyId: string }>): Command<AgentKey> {
  const before = yield* queryOne(`SELECT * FROM agent_keys WHERE id = ? AND agent_id = ?${context.dialect.forUpdate}`, [keyId, id])
  if (!before) throw new PlaneRefusal('not_found', `agent "${id}" has no key "${keyId}"`)
  if (before.revoked_at !== null) return keyOf(before)
  const row = yield* queryOne('UPDATE agent_keys SET revoked_at = ? WHERE id = ? RETURNING *', [context.now(), keyId])
  yield* releaseLeases(context, { agentId: id, actor, why: `the key of agent ${id} was revoked` })
  yield* recordEvent(context, { type: 'key.revoked', actor, agentId: id, data: { key_id: keyId } })
  return keyOf(row ?? before)
}

/** Makes a new key and revokes all others. Running runs continue with their own tokens. */
function* rotateKey(context: PlaneContext, { actor, id, keyId }: By<{ readonly keyId: string }>): Command<NewAgentKey> {
  const agent = yield* lockAgent(context, id)
  const rows = yield ['UPDATE agent_keys SET revoked_at = ? WHERE agent_id = ? AND revoked_at IS NULL RETURNING id', [context.now(), id]]
  for (const row of rows)
    yield* recordEvent(context, {
      type: 'key.revoked',
      actor,
      agentId: id,
      role: text(agent, 'role'),
      data: { key_id: text(row, 'id'), rotated: true },
    })
  return yield* addKey(context, { actor, id, keyId })
}

/** @throws PlaneRefusal not_found */
function* lockAgent({ dialect }: PlaneContext, id: string): Command<Row> {
  const row = yield* queryOne(`SELECT * FROM agents WHERE id = ?${dialect.forUpdate}`, [id])
  if (!row) throw noAgent(id)
  return row
}

function noAgent(id: string): PlaneRefusal {
  return new PlaneRefusal('not_found', `unknown agent "${id}"; an operator adds it with "control agent add"`)
}

/** Reads agents in the order in which operators added them. */
function* readAgents(context: PlaneContext, id?: string): Command<readonly Agent[]> {
  const rows = id === undefined ? yield ['SELECT * FROM agents ORDER BY place'] : yield ['SELECT * FROM agents WHERE id = ?', [id]]
  const running = yield* runningTasks(context, id)
  const spent = yield* spentToday(context)
  return rows.map((row) => agentOf(row, { running: running.get(text(row, 'id')) ?? [], spent: spent.get(text(row, 'id')) ?? 0 }))
}

/** @throws PlaneRefusal not_found */
function* readAgent(context: PlaneContext, id: string): Command<Agent> {
  const [agent] = yield* readAgents(context, id)
  if (!agent) throw noAgent(id)
  return agent
}

type RunningTasks = Agent['running']

function* runningTasks(context: PlaneContext, id: string | undefined): Command<ReadonlyMap<string, RunningTasks>> {
  const rows = yield [
    `SELECT runs.agent_id AS agent_id, runs.id AS run_id, tasks.id AS task_id, tasks.title AS title, tasks.available_at AS lease_until
      FROM runs JOIN tasks ON tasks.run_id = runs.id WHERE runs.state = 'running' AND tasks.status = 'running' AND tasks.available_at > ?
      ${id === undefined ? '' : 'AND runs.agent_id = ?'} ORDER BY runs.id`,
    id === undefined ? [context.now()] : [context.now(), id],
  ]
  const groups = Map.groupBy(rows, (row) => text(row, 'agent_id'))
  return new Map([...groups].map(([agentId, of]) => [agentId, of.map(runningOf)]))
}

function runningOf(row: Row): RunningTasks[number] {
  return {
    task_id: idOf('TASK', int(row, 'task_id')),
    run_id: idOf('RUN', int(row, 'run_id')),
    title: text(row, 'title'),
    lease_until: time(row, 'lease_until'),
  }
}

function* spentToday(context: PlaneContext): Command<ReadonlyMap<string, number>> {
  const { day } = yield* currentDay(context)
  const rows = yield ["SELECT scope, spent FROM budget_days WHERE day = ? AND scope LIKE 'agent:%'", [day]]
  return new Map(rows.map((row) => [text(row, 'scope').slice('agent:'.length), int(row, 'spent')]))
}

function agentOf(row: Row, { running, spent }: { readonly running: RunningTasks; readonly spent: number }): Agent {
  return {
    id: text(row, 'id'),
    role: text(row, 'role'),
    heartbeat_enabled: flag(row, 'heartbeat_enabled'),
    description: text(row, 'description'),
    daily_tokens: intOrNull(row, 'daily_tokens'),
    paused: flag(row, 'paused'),
    paused_reason: textOrNull(row, 'paused_reason'),
    wakes: int(row, 'wakes'),
    last_seen_at: timeOrNull(row, 'last_seen_at'),
    worker: objectOrNull(row, 'worker'),
    running,
    spent_today: spent,
    created_at: time(row, 'created_at'),
  }
}
