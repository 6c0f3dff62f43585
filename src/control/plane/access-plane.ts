/** Serves access: finds the caller that has a secret, and keeps the tokens of operators. */

import { sha256 } from '../../kit/sha256.ts'
import { type Caller, onlyOperator, signatureOf } from '../contract/caller.ts'
import type { Identity, NewOperatorToken, OperatorToken } from '../contract/fleet-shapes.ts'
import type { AccessPlane } from '../contract/plane.ts'
import { PlaneRefusal } from '../contract/plane-refusal.ts'
import type { Command, Row } from '../contract/store-port.ts'
import { idOf, int, intOrNull, type PlaneContext, queryNumber, queryOne, text, time, timeOrNull } from './command.ts'
import { recordEvent } from './events.ts'

export function createAccessPlane(context: PlaneContext): AccessPlane {
  const { store } = context
  return {
    async callerOf(secret) {
      const identified = await store.read(() => callerOfSecret(context, secret))
      const key = identified?.usedKey
      if (key !== undefined)
        await store.write(function* () {
          yield ['UPDATE agent_keys SET last_used_at = ? WHERE id = ?', [context.now(), key]]
        })
      return identified?.caller
    },
    identityOf: (caller) => identityOf(context, caller),
    operator: async (id, session) => await store.read(() => operatorInForce(id, session)),
    endSession: async (session, expires) => await store.write(() => endSession(context, { session, expires })),
    async operators(caller) {
      onlyOperator(caller, 'list operators')
      return await store.read(listOperators)
    },
    async newOperator(caller, name, signal) {
      const actor = signatureOf(onlyOperator(caller, 'add an operator'))
      const id = newSecretId(context, 'op')
      return await shownOnce(context, { table: 'operators', id, signal }, () => addOperator(context, { name, actor, id }))
    },
    async revokeOperator(caller, id) {
      onlyOperator(caller, 'revoke an operator')
      return await store.write(() => revokeOperator(context, { caller, id }))
    },
    firstOperator: async (name, secret) => await store.write(() => firstOperator(context, { name, secret })),
  }
}

function* operatorInForce(id: string, session = ''): Command<Awaited<ReturnType<AccessPlane['operator']>>> {
  const row = yield* queryOne(
    'SELECT name, digest FROM operators WHERE id = ? AND revoked_at IS NULL AND NOT EXISTS (SELECT 1 FROM ended_sessions WHERE id = ?)',
    [id, session],
  )
  return row && { caller: { kind: 'operator', id, name: text(row, 'name') }, digest: text(row, 'digest') }
}

function* endSession({ now }: PlaneContext, { session, expires }: { readonly session: string; readonly expires: number }): Command<void> {
  yield ['DELETE FROM ended_sessions WHERE expires_at < ?', [now()]]
  yield ['INSERT INTO ended_sessions (id, expires_at) VALUES (?, ?) ON CONFLICT (id) DO NOTHING', [session, expires]]
}

type KnownCaller = { readonly caller: Caller; readonly usedKey?: string }

/**
 * Looks up the digest of the secret, so that the time it takes reveals nothing about the secret, and asks the database each time, so that a
 * revocation by another daemon is in force with the next request.
 */
function* callerOfSecret(context: PlaneContext, secret: string): Command<KnownCaller | undefined> {
  const digest = sha256(secret)
  if (secret.startsWith('cpr_')) return yield* callerOfRunToken(context, digest)
  if (secret.startsWith('cpa_')) return yield* callerOfKey(context, digest)
  const row = yield* queryOne('SELECT id, name FROM operators WHERE digest = ? AND revoked_at IS NULL', [digest])
  return row && { caller: { kind: 'operator', id: text(row, 'id'), name: text(row, 'name') } }
}

/** The plane writes the last use of a key at most once a minute. */
const noteUseMs = 60_000

function* callerOfKey(context: PlaneContext, digest: string): Command<KnownCaller | undefined> {
  const row = yield* queryOne(
    `SELECT agent_keys.id AS key_id, agent_keys.last_used_at AS last_used_at, agents.id AS id, agents.role AS role FROM agent_keys
      JOIN agents ON agents.id = agent_keys.agent_id WHERE agent_keys.digest = ? AND agent_keys.revoked_at IS NULL`,
    [digest],
  )
  if (!row) return undefined
  const isNew = context.now() - (intOrNull(row, 'last_used_at') ?? 0) >= noteUseMs
  const keyId = text(row, 'key_id')
  return { caller: { kind: 'agent', id: text(row, 'id'), role: text(row, 'role'), keyId }, usedKey: isNew ? keyId : undefined }
}

/** A run may ask again for an answer that it lost for this long after it ended. */
const answerAgainMs = 3_600_000

/**
 * Accepts the token of a run while its lease is in force, and for a while after a run that ended by itself, so that it can repeat a post
 * whose answer was lost; every write checks the lease again. @throws PlaneRefusal lease_lost for the token of any other run
 */
function* callerOfRunToken(context: PlaneContext, digest: string): Command<KnownCaller | undefined> {
  const row = yield* queryOne(
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
      hasEnded: hasEnded || undefined,
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

/** Returns false once the agent was removed or a key of it was revoked: a thief of the key may have the tokens of ended runs too. */
function* isStillTrusted(run: Row): Command<boolean> {
  const agent = yield* queryOne(
    'SELECT (SELECT MAX(revoked_at) FROM agent_keys WHERE agent_id = agents.id) AS revoked_at FROM agents WHERE id = ?',
    [text(run, 'agent_id')],
  )
  return agent !== undefined && (intOrNull(agent, 'revoked_at') ?? 0) < int(run, 'ended_at')
}

function tokenOver(row: Row): PlaneRefusal {
  const state = row.state === 'running' ? 'its lease expired' : `it is ${text(row, 'state')}`
  const id = idOf('RUN', int(row, 'id'))
  return new PlaneRefusal('lease_lost', `the token of ${id} is not valid any more: ${state}; stop the run: its writes change nothing`, {
    run_id: id,
    state: row.state,
  })
}

/** @throws PlaneRefusal forbidden for the shared secret, which belongs to no one */
async function identityOf(context: PlaneContext, caller: Caller): Promise<Identity> {
  const { kind, id } = caller
  if (kind === 'seed') throw new PlaneRefusal('forbidden', 'the shared secret is not a credential of an agent or an operator')
  const role = caller.kind === 'agent' || caller.kind === 'run' ? caller.role : null
  return { kind, id, role, control_plane: await planeId(context) }
}

/** Returns an id that stays when the address or the engine changes. It is short because workers use it in paths. */
async function planeId({ store, randomBytes }: PlaneContext): Promise<string> {
  const existing = await store.read(readPlaneId)
  if (existing !== undefined) return existing
  const id = Buffer.from(randomBytes(8)).toString('hex')
  return await store.write(() => storePlaneId(id))
}

function* readPlaneId(): Command<string | undefined> {
  const row = yield* queryOne("SELECT value FROM settings WHERE name = 'plane_id'")
  return row && text(row, 'value')
}

/** Stores the id unless another daemon stored one at the same time. */
function* storePlaneId(id: string): Command<string> {
  yield ["INSERT INTO settings (name, value) VALUES ('plane_id', ?) ON CONFLICT (name) DO NOTHING", [id]]
  return (yield* readPlaneId()) ?? id
}

function* listOperators(): Command<readonly OperatorToken[]> {
  return (yield ['SELECT * FROM operators ORDER BY created_at, id']).map(operatorOf)
}

function operatorOf(row: Row): OperatorToken {
  return { id: text(row, 'id'), name: text(row, 'name'), created_at: time(row, 'created_at'), revoked_at: timeOrNull(row, 'revoked_at') }
}

type NewOperator = { readonly name: string; readonly actor: string; readonly id: string; readonly secret?: string | undefined }

function* addOperator(context: PlaneContext, { name, actor, id, secret }: NewOperator): Command<NewOperatorToken> {
  const token = secret === undefined ? newSecret(context, 'cpo') : { secret, digest: sha256(secret) }
  const row = yield* queryOne('INSERT INTO operators (id, name, digest, created_at) VALUES (?, ?, ?, ?) RETURNING *', [
    id,
    name,
    token.digest,
    context.now(),
  ])
  if (!row) throw new Error('INSERT … RETURNING answered no row')
  yield* recordEvent(context, { type: 'operator.added', actor, data: { id: text(row, 'id'), name } })
  return { ...operatorOf(row), token: token.secret }
}

/** @throws PlaneRefusal not_found; conflict for the last operator */
export function* revokeOperator(
  context: PlaneContext,
  { caller, id }: { readonly caller: Caller; readonly id: string },
): Command<OperatorToken> {
  const row = yield* queryOne('SELECT * FROM operators WHERE id = ?', [id])
  if (!row) throw new PlaneRefusal('not_found', `unknown operator "${id}"; "control operator list" shows them`)
  if (row.revoked_at !== null) return operatorOf(row)
  const others = yield* queryNumber('SELECT COUNT(*) AS value FROM operators WHERE revoked_at IS NULL AND id <> ?', [id])
  if (others === 0) throw new PlaneRefusal('conflict', 'this is the last operator; add another one before you revoke it')
  const revoked = yield* queryOne('UPDATE operators SET revoked_at = ? WHERE id = ? RETURNING *', [context.now(), id])
  yield* recordEvent(context, { type: 'operator.revoked', actor: signatureOf(caller), data: { id, name: text(row, 'name') } })
  return operatorOf(revoked ?? row)
}

/** Adds an operator. @returns undefined when there is an operator already, or when this secret is known; a revoked secret stays revoked */
function* firstOperator(
  context: PlaneContext,
  { name, secret }: { readonly name: string; readonly secret?: string | undefined },
): Command<NewOperatorToken | undefined> {
  const [condition, params] = secret === undefined ? ['revoked_at IS NULL', []] : ['digest = ?', [sha256(secret)]]
  const exists = yield* queryNumber(`SELECT COUNT(*) AS value FROM operators WHERE ${condition}`, params)
  return exists > 0 ? undefined : yield* addOperator(context, { name, actor: 'control plane', id: newSecretId(context, 'op'), secret })
}

type UnseenSecret = { readonly table: 'agent_keys' | 'operators'; readonly id: string; readonly signal?: AbortSignal | undefined }

/** Makes a secret that is shown once. One that nobody sees, because the write got no answer or its caller has left, is revoked. */
export async function shownOnce<T>(context: PlaneContext, unseen: UnseenSecret, make: () => Command<T>): Promise<T> {
  try {
    const made = await context.store.write(make)
    if (!unseen.signal?.aborted) return made
    throw new PlaneRefusal('unavailable', `the caller left before it was shown ${unseen.id}, which is revoked`)
  } catch (error) {
    if (error instanceof PlaneRefusal && error.code === 'unavailable') void revokeUnseen(context, unseen)
    throw error
  }
}

const [revokeTries, revokeEveryMs] = [300, 2_000]

async function revokeUnseen(context: PlaneContext, { table, id }: UnseenSecret): Promise<void> {
  function* revoke(): Command<void> {
    const [row] = yield [`UPDATE ${table} SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL RETURNING *`, [context.now(), id]]
    if (!row) return
    const [type, agentId] = table === 'operators' ? (['operator.revoked'] as const) : (['key.revoked', text(row, 'agent_id')] as const)
    yield* recordEvent(context, { type, actor: 'control plane', agentId, data: { id, unseen: true } })
  }
  for (let tries = 1; tries <= revokeTries; tries += 1) {
    try {
      return await context.store.write(revoke)
    } catch {}
    await new Promise((resolve) => setTimeout(resolve, revokeEveryMs).unref())
  }
}

const secretBytes = 32

/** Makes a secret, of which the plane stores only the SHA-256. `cpo` is for operators, `cpa` for agents, `cpr` for runs. */
export function newSecret({ randomBytes }: Pick<PlaneContext, 'randomBytes'>, kind: 'cpo' | 'cpa' | 'cpr') {
  const secret = `${kind}_${Buffer.from(randomBytes(secretBytes)).toString('base64url')}`
  return { secret, digest: sha256(secret) }
}

/** Makes the id of a key or an operator: short, and no help in guessing the secret. */
export function newSecretId({ randomBytes }: Pick<PlaneContext, 'randomBytes'>, kind: 'op' | 'key'): string {
  return `${kind}_${Buffer.from(randomBytes(9)).toString('hex')}`
}
