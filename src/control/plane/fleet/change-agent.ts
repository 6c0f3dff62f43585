/** Adds, edits, pauses, wakes and removes agents. */

import type { AgentDraft, AgentPatch } from '../../contract/fleet-shapes.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Command, Param, Row } from '../../contract/store-port.ts'
import { nextId, type PlaneContext } from '../context.ts'
import { recordEvent } from '../events/record-event.ts'
import { first, int, text } from '../row.ts'
import { wakeBlocked } from '../spending/wake-blocked.ts'
import { lockAgent } from './agent-row.ts'
import { releaseLeases } from './release-leases.ts'

export type By<T = unknown> = { readonly actor: string; readonly id: string } & T

export function* addAgent(context: PlaneContext, { draft, actor }: { readonly draft: AgentDraft; readonly actor: string }): Command<void> {
  const { id, role, heartbeat_enabled, description, daily_tokens } = draft
  const place = yield* nextId('agents')
  const row = yield* first(
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

/** Running tasks keep the role that they were claimed with. */
export function* editAgent(context: PlaneContext, { actor, id, patch }: By<{ readonly patch: AgentPatch }>): Command<void> {
  const before = yield* lockAgent(context, id)
  const { heartbeat_enabled, ...rest } = patch
  const columns = { ...rest, ...(heartbeat_enabled === undefined ? {} : { heartbeat_enabled: heartbeat_enabled ? 1 : 0 }) }
  const row = yield* setColumns(id, columns)
  yield* recordEvent(context, { type: 'agent.changed', actor, agentId: id, role: text(row ?? before, 'role'), data: { ...patch } })
  if (patch.daily_tokens !== undefined) yield* wakeBlocked(context, actor)
}

/** The names come from our own code and from checked requests, never from outside. */
function* setColumns(id: string, columns: Readonly<Record<string, Param | undefined>>): Command<Row | undefined> {
  const given = Object.entries(columns).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]))
  if (given.length === 0) return undefined
  const sets = given.map(([name]) => `${name} = ?`).join(', ')
  return yield* first(`UPDATE agents SET ${sets} WHERE id = ? RETURNING *`, [...given.map(([, value]) => value), id])
}

/** A paused agent gets no new task; what it runs goes on to its end. To stop that too, cancel the task. */
export function* pauseAgent(context: PlaneContext, { actor, id, reason }: By<{ readonly reason: string }>): Command<void> {
  const row = yield* lockAgent(context, id)
  yield* setColumns(id, { paused: 1, paused_reason: reason })
  yield* recordEvent(context, { type: 'agent.paused', actor, agentId: id, role: text(row, 'role'), data: { reason } })
  yield* context.store.announce('agents')
}

export function* resumeAgent(context: PlaneContext, { actor, id }: By): Command<void> {
  const row = yield* lockAgent(context, id)
  yield* setColumns(id, { paused: 0, paused_reason: null })
  yield* recordEvent(context, { type: 'agent.resumed', actor, agentId: id, role: text(row, 'role') })
  yield* context.store.announce('agents')
}

export function* wakeAgent(context: PlaneContext, { actor, id }: By): Command<void> {
  const row = yield* lockAgent(context, id)
  yield* setColumns(id, { wakes: int(row, 'wakes') + 1 })
  yield* recordEvent(context, { type: 'agent.woken', actor, agentId: id, role: text(row, 'role') })
  yield* context.store.announce('agents')
}

/** Its leases are released and its keys deleted; what it did stays in events, runs and the ledger. */
export function* removeAgent(context: PlaneContext, { actor, id }: By): Command<void> {
  yield* releaseLeases(context, { agentId: id, actor, why: `agent ${id} was removed` })
  const row = yield* lockAgent(context, id)
  yield ['DELETE FROM agent_keys WHERE agent_id = ?', [id]]
  yield ['DELETE FROM agents WHERE id = ?', [id]]
  yield* recordEvent(context, { type: 'agent.removed', actor, agentId: id, role: text(row, 'role') })
  yield* context.store.announce('agents')
}
