/** Finds out who has a secret. */

import { sha256 } from '../../../../kit/sha256.ts'
import type { Caller } from '../../../contract/caller.ts'
import { PlaneRefusal } from '../../../contract/plane-refusal.ts'
import type { Command, Row } from '../../../contract/store-port.ts'
import { idOf, type PlaneContext } from '../../context.ts'
import { first, int, intOrNull, text } from '../../row.ts'

export type Found = { readonly caller: Caller; readonly usedKey?: string }

/**
 * Looks the digest of the secret up, so that the time it takes says nothing about the secret, and asks the database each time, so that a
 * revocation by another daemon holds from the next request on.
 */
export function* callerOfSecret(context: PlaneContext, secret: string): Command<Found | undefined> {
  const digest = sha256(secret)
  if (secret.startsWith('cpr_')) return yield* runOf(context, digest)
  if (secret.startsWith('cpa_')) return yield* agentOf(context, digest)
  const row = yield* first('SELECT id, name FROM operators WHERE digest = ? AND revoked_at IS NULL', [digest])
  return row && { caller: { kind: 'operator', id: text(row, 'id'), name: text(row, 'name') } }
}

/** A key that is used all the time is noted once a minute. */
const noteUseMs = 60_000

function* agentOf(context: PlaneContext, digest: string): Command<Found | undefined> {
  const row = yield* first(
    `SELECT agent_keys.id AS key_id, agent_keys.last_used_at AS last_used_at, agents.id AS id, agents.role AS role FROM agent_keys
      JOIN agents ON agents.id = agent_keys.agent_id WHERE agent_keys.digest = ? AND agent_keys.revoked_at IS NULL`,
    [digest],
  )
  if (!row) return undefined
  const isNew = context.now() - (intOrNull(row, 'last_used_at') ?? 0) >= noteUseMs
  const keyId = text(row, 'key_id')
  return { caller: { kind: 'agent', id: text(row, 'id'), role: text(row, 'role'), keyId }, ...(isNew ? { usedKey: keyId } : {}) }
}

/** How long after its end a run may ask again for the answer that it lost. */
const answerAgainMs = 3_600_000

/**
 * While the lease is in force; and for a while after a run that ended by its own word, so that a post whose answer was lost can be sent again:
 * every write looks at the lease itself. @throws PlaneRefusal lease_lost for the token of any other run
 */
function* runOf(context: PlaneContext, digest: string): Command<Found | undefined> {
  const row = yield* first(
    `SELECT runs.id AS id, runs.task_id AS task_id, runs.agent_id AS agent_id, runs.role AS role, runs.attempt AS attempt, runs.state AS state,
      runs.ended_at AS ended_at, tasks.run_id AS run_id, tasks.status AS status, tasks.available_at AS available_at
      FROM runs JOIN tasks ON tasks.id = runs.task_id WHERE runs.token_digest = ?`,
    [digest],
  )
  if (!row) return undefined
  const hasEnded = !isInForce(row, context.now())
  if (hasEnded && !(mayAskAgain(row, context.now()) && (yield* isStillTrusted(row)))) throw tokenOver(row)
  return {
    caller: {
      kind: 'run',
      id: text(row, 'agent_id'),
      role: text(row, 'role'),
      taskId: idOf('TASK', int(row, 'task_id')),
      runId: idOf('RUN', int(row, 'id')),
      attempt: int(row, 'attempt'),
      ...(hasEnded ? { hasEnded } : {}),
    },
  }
}

function isInForce(row: Row, now: number): boolean {
  return row.state === 'running' && row.status === 'running' && int(row, 'run_id') === int(row, 'id') && int(row, 'available_at') > now
}

function mayAskAgain(row: Row, now: number): boolean {
  const hasEndedItself = row.state === 'completed' || row.state === 'failed' || row.state === 'waiting'
  return hasEndedItself && now - int(row, 'ended_at') < answerAgainMs
}

/** Whoever stole a key may have the tokens of runs that ended, too: they end with the key, or with the agent. */
function* isStillTrusted(run: Row): Command<boolean> {
  const agent = yield* first(
    'SELECT (SELECT MAX(revoked_at) FROM agent_keys WHERE agent_id = agents.id) AS revoked_at FROM agents WHERE id = ?',
    [text(run, 'agent_id')],
  )
  return agent !== undefined && (intOrNull(agent, 'revoked_at') ?? 0) < int(run, 'ended_at')
}

function tokenOver(row: Row): PlaneRefusal {
  const state = row.state === 'running' ? 'its lease expired' : `it is ${text(row, 'state')}`
  const id = idOf('RUN', int(row, 'id'))
  return new PlaneRefusal('lease_lost', `the token of ${id} is no longer in force: ${state}; stop the run, its writes change nothing`, {
    run_id: id,
    state: row.state,
  })
}
