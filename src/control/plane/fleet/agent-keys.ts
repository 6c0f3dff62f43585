/** Makes, lists, revokes and rotates the keys of agents. */

import type { AgentKey, NewAgentKey } from '../../contract/fleet-shapes.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Command, Row } from '../../contract/store-port.ts'
import type { PlaneContext } from '../context.ts'
import { recordEvent } from '../events/record-event.ts'
import { first, text, time, timeOrNull } from '../row.ts'
import { newSecret, newSecretId } from './access/new-secret.ts'
import { lockAgent, noAgent } from './agent-row.ts'
import type { By } from './change-agent.ts'
import { releaseLeases } from './release-leases.ts'

export function* listKeys(agentId: string): Command<readonly AgentKey[]> {
  if (!(yield* first('SELECT id FROM agents WHERE id = ?', [agentId]))) throw noAgent(agentId)
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

export function* addKey(context: PlaneContext, { actor, id }: By): Command<NewAgentKey> {
  const agent = yield* lockAgent(context, id)
  const { secret, digest } = newSecret(context, 'cpa')
  const row = yield* first('INSERT INTO agent_keys (id, agent_id, digest, created_at) VALUES (?, ?, ?, ?) RETURNING *', [
    newSecretId(context, 'key'),
    id,
    digest,
    context.now(),
  ])
  if (!row) throw new Error('INSERT … RETURNING answered no row')
  yield* recordEvent(context, { type: 'key.added', actor, agentId: id, role: text(agent, 'role'), data: { key_id: text(row, 'id') } })
  return { ...keyOf(row), key: secret }
}

/** Whoever had the key may have its leases, so all leases of the agent end with it. Revoking it again changes nothing. */
export function* revokeKey(context: PlaneContext, { actor, id, keyId }: By<{ readonly keyId: string }>): Command<AgentKey> {
  const known = yield* first(`SELECT * FROM agent_keys WHERE id = ? AND agent_id = ?${context.dialect.forUpdate}`, [keyId, id])
  if (!known) throw new PlaneRefusal('not_found', `agent "${id}" has no key "${keyId}"`)
  if (known.revoked_at !== null) return keyOf(known)
  const row = yield* first('UPDATE agent_keys SET revoked_at = ? WHERE id = ? RETURNING *', [context.now(), keyId])
  yield* releaseLeases(context, { agentId: id, actor, why: `the key of agent ${id} was revoked` })
  yield* recordEvent(context, { type: 'key.revoked', actor, agentId: id, data: { key_id: keyId } })
  return keyOf(row ?? known)
}

/** The runs under way go on with their own tokens. */
export function* rotateKey(context: PlaneContext, { actor, id }: By): Command<NewAgentKey> {
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
  return yield* addKey(context, { actor, id })
}
