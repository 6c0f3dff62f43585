/** Gives the next task of a role to an agent: a run, its lease and its token, in one transaction. */

import { sha256 } from '../../../kit/sha256.ts'
import { type Caller, signatureOf } from '../../contract/caller.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Beside, Command, Row } from '../../contract/store-port.ts'
import type { Claim, ClaimRequest } from '../../contract/task-shapes.ts'
import { settingsOf } from '../budget/budget-settings.ts'
import { leastLeft } from '../budget/reservations.ts'
import { scopesFor } from '../budget/scopes.ts'
import { idOf, type PlaneContext } from '../context.ts'
import { first, flag, int, intOrNull, text, textOrNull } from '../row.ts'
import { fullTask, recordTask } from '../tasks/task-change.ts'
import { taskOf } from '../tasks/task-row.ts'
import { candidate, candidateParams, withLabels } from './find-candidate.ts'
import { type Lease, takeAfterSweep, takeBest } from './take-task.ts'

/** Why there was nothing: `paused` and `budget` concern the agent and its role, so the tasks stay for others. */
export type NoClaim = 'empty' | 'paused' | 'budget' | 'gone'
export type ClaimOutcome = { readonly claim: Claim } | { readonly none: NoClaim; readonly wakes: number }

export type Claiming = { readonly caller: Caller; readonly request: ClaimRequest; readonly gone: AbortSignal }

/** @throws PlaneRefusal forbidden, not_found for an unknown agent, unauthorized when the key was revoked while the claim waited */
export function* claimTask(context: PlaneContext, claiming: Claiming): Command<ClaimOutcome> {
  const { caller, request, gone } = claiming
  // A command may wait for its turn; whoever went away meanwhile gets nothing.
  if (gone.aborted) return { none: 'gone', wakes: 0 }
  const agent = yield* lookAtAgent(context, caller, request)
  const wakes = int(agent, 'wakes')
  if (flag(agent, 'paused')) return { none: 'paused', wakes }
  const settings = settingsOf(textOrNull(agent, 'budget'))
  const payer = { role: request.role, agentId: request.agent_id }
  const left = yield* leastLeft(context, settings, scopesFor(payer, settings, intOrNull(agent, 'daily_tokens')))
  if (left === 0) return { none: 'budget', wakes }
  const token = `cpr_${Buffer.from(context.randomBytes(32)).toString('base64url')}`
  const lease = { request, digest: sha256(token) }
  const quick = agent.candidate === null ? undefined : yield* takeBest(context, lease)
  const task = quick ?? (yield* takeAfterSweep(context, lease))
  if (!task) return { none: 'empty', wakes }
  return { claim: yield* begin(context, task, { ...lease, caller, token }) }
}

/** Each takes its task with one statement, so no claim stands in the way of another. */
export function besideClaims(): Beside {
  return { kind: 'claim', key: crypto.randomUUID() }
}

/** A waiting worker counts as seen about as often as it asks anew. */
const seenEveryMs = 10_000

const look = `SELECT role, paused, wakes, last_seen_at, daily_tokens, (SELECT value FROM settings WHERE name = 'budget') AS budget,
  (SELECT COUNT(*) FROM agent_keys WHERE id = ? AND revoked_at IS NULL) AS keys, (SELECT id ${candidate}) AS candidate
  FROM agents WHERE id = ?`

/** All that a claim has to know beforehand, in one statement; `candidate` is the task that it would get now. */
function* lookAtAgent(context: PlaneContext, caller: Caller, { agent_id, role, labels }: ClaimRequest): Command<Row> {
  requireClaimer(caller, agent_id)
  const keyId = caller.kind === 'agent' ? (caller.keyId ?? null) : null
  const agent = yield* first(withLabels(look, labels), [keyId, ...candidateParams({ role, agentId: agent_id, labels }), agent_id])
  if (keyId !== null && (!agent || int(agent, 'keys') === 0))
    throw new PlaneRefusal('unauthorized', `this key of agent ${caller.id} was revoked`)
  if (!agent) throw new PlaneRefusal('not_found', `there is no agent "${agent_id}"; add it with "braidclaw control agent add"`)
  if (agent.role !== role)
    throw new PlaneRefusal('forbidden', `agent "${agent_id}" has the role "${text(agent, 'role')}" and claims no tasks of "${role}"`)
  if (context.now() - int(agent, 'last_seen_at') > seenEveryMs)
    yield ['UPDATE agents SET last_seen_at = ? WHERE id = ?', [context.now(), agent_id]]
  return agent
}

function requireClaimer(caller: Caller, agentId: string): void {
  if (caller.kind === 'operator' || (caller.kind === 'agent' && caller.id === agentId)) return
  throw new PlaneRefusal('forbidden', `only the key of agent "${agentId}" claims tasks for it`)
}

type Beginning = Lease & { readonly caller: Caller; readonly token: string }

function* begin(context: PlaneContext, task: Row, { caller, request, digest, token }: Beginning): Command<Claim> {
  const [runId, attempt] = [int(task, 'run_id'), int(task, 'attempt')]
  yield [
    `INSERT INTO runs (id, task_id, agent_id, role, attempt, state, token_digest, began_at, last_beat_at, tokens_used, tokens_settled, log_bytes, log_truncated)
      VALUES (?, ?, ?, ?, ?, 'running', ?, ?, ?, 0, 0, 0, 0)`,
    [runId, int(task, 'id'), request.agent_id, request.role, attempt, digest, context.now(), context.now()],
  ]
  yield* recordTask(context, task, { type: 'task.claimed', actor: signatureOf(caller), agentId: request.agent_id, data: { attempt } })
  const full = int(task, 'needs') > 0 ? yield* fullTask(task, request.agent_id) : taskOf(task, [], request.agent_id)
  return { task: full, run_id: idOf('RUN', runId), attempt, lease_until: full.available_at, run_token: token }
}
