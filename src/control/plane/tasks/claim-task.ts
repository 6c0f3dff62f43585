/** Gives the next task of a role to an agent as a lease, extends leases, and takes back those that were released or expired. */

import { type Caller, signatureOf } from '../../contract/caller.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { BatchKey, Command, Param, Row } from '../../contract/store-port.ts'
import type { Beat, Claim, ClaimRequest, ReleaseRequest } from '../../contract/task-shapes.ts'
import { newSecret } from '../access-plane.ts'
import { scopesFor, settingsOf } from '../budget/limits.ts'
import { leastLeft, remainingFor } from '../budget/reservations.ts'
import { flag, idOf, int, intOrNull, lastNumber, marks, type PlaneContext, queryOne, reserveNumber, text, textOrNull } from '../command.ts'
import { blockTask, endTask, type Requeue, requeueTask } from './end-task.ts'
import { fullTask, lockLease, moveLabels, readyQueueAt, readyTopic, recordTask, taskOf } from './task-change.ts'

/** Says why there was no task: `paused` and `budget` concern the agent and its role, so the tasks stay for others. */
type NoClaim = 'empty' | 'paused' | 'budget' | 'disconnected'
export type ClaimOutcome = { readonly claim: Claim } | { readonly none: NoClaim; readonly wakes: number }

export type ClaimCall = { readonly caller: Caller; readonly request: ClaimRequest; readonly disconnected: AbortSignal }

/** Claims a task. @throws PlaneRefusal forbidden, not_found for an unknown agent, unauthorized when the key was revoked while the claim waited */
export function* claimTask(context: PlaneContext, call: ClaimCall): Command<ClaimOutcome> {
  const { caller, request, disconnected } = call
  // The command may have waited for its turn: a client that left meanwhile gets no task.
  if (disconnected.aborted) return { none: 'disconnected', wakes: 0 }
  const agent = yield* readClaimant(context, caller, request)
  const wakes = int(agent, 'wakes')
  if (flag(agent, 'paused')) return { none: 'paused', wakes }
  const settings = settingsOf(textOrNull(agent, 'budget'))
  const payer = { role: request.role, agentId: request.agent_id }
  const left = yield* leastLeft(context, settings, scopesFor(payer, settings, intOrNull(agent, 'daily_tokens')))
  if (left === 0) return { none: 'budget', wakes }
  const { secret: token, digest } = newSecret(context, 'cpr')
  const lease = { request, digest }
  const quick = agent.candidate === null ? undefined : yield* leaseCandidate(context, lease)
  const task = quick ?? (yield* leaseAfterSweep(context, lease))
  if (!task) return { none: 'empty', wakes }
  return { claim: yield* startRun(context, task, { ...lease, caller, token }) }
}

/** Lets all claims share a batch: each takes its task with one statement. */
export function claimBatchKey(): BatchKey {
  return { kind: 'claim', key: crypto.randomUUID() }
}

/** The literals repeat the conditions of the indexes, so that both engines use them. Delayed tasks have a larger queue_at. */
const isDueNow = 'queue_at < 1000000000000000'
const inRole = "SELECT id FROM tasks WHERE status = 'pending' AND role = ? AND"
const order = 'ORDER BY queue_at, id LIMIT 1'

/**
 * Selects the task that has waited longest, of those that anyone in the role may take and those for this agent alone. With `SELECT id` before
 * it and the parameters of `candidateParams` it is an expression.
 */
const candidate = `FROM tasks WHERE id IN ((${inRole} agent_id IS NULL AND ${isDueNow} ${order}), (${inRole} agent_id = ? AND ${isDueNow} ${order})) ${order}`

/** A waiting worker counts as seen about as often as it asks again. */
const seenEveryMs = 10_000

const claimantText = `SELECT role, paused, wakes, last_seen_at, daily_tokens, (SELECT value FROM settings WHERE name = 'budget') AS budget,
  (SELECT COUNT(*) FROM agent_keys WHERE id = ? AND revoked_at IS NULL) AS keys, (SELECT id ${candidate}) AS candidate
  FROM agents WHERE id = ?`

/** Reads all that a claim needs to know beforehand in one statement; `candidate` is the task that it would get now. */
function* readClaimant(context: PlaneContext, caller: Caller, request: ClaimRequest): Command<Row> {
  const { agent_id, role, labels } = request
  requireClaimer(caller, agent_id)
  const keyId = caller.kind === 'agent' ? (caller.keyId ?? null) : null
  const agent = yield* queryOne(withLabels(claimantText, labels), [keyId, ...candidateParams(request), agent_id])
  if (keyId !== null && (!agent || int(agent, 'keys') === 0))
    throw new PlaneRefusal('unauthorized', `this key of agent ${caller.id} was revoked`)
  if (!agent) throw new PlaneRefusal('not_found', `unknown agent "${agent_id}"; add it with "braidclaw control agent add"`)
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

type NewRun = NewLease & { readonly caller: Caller; readonly token: string }

function* startRun(context: PlaneContext, task: Row, { caller, request, digest, token }: NewRun): Command<Claim> {
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

type NewLease = { readonly request: ClaimRequest; readonly digest: string }

const leaseText = `UPDATE tasks SET status = 'running', attempt = attempt + 1, run_id = ${lastNumber.runs}, available_at = ?, lease_digest = ?, lease_ms = ?,
  cancel_requested = 0, error = NULL, version = version + 1, updated_at = ?
  WHERE id = (SELECT id ${candidate}) AND (budget_tokens IS NULL OR tokens_used + tokens_reserved < budget_tokens)
  RETURNING *, (SELECT COUNT(*) FROM dependencies WHERE task_id = tasks.id) AS needs`

/**
 * Leases the first task, unless its own budget is spent. One statement finds and changes it, so claims need no turns. @returns undefined also
 * when that task has no budget left
 */
function* leaseCandidate({ now, options }: PlaneContext, { request, digest }: NewLease): Command<Row | undefined> {
  const leaseMs = Math.min(request.lease_s ?? options.leaseSeconds, options.leaseSeconds) * 1_000
  yield* reserveNumber('runs')
  const params = [now() + leaseMs, digest, leaseMs, now(), ...candidateParams(request)]
  const leased = yield* queryOne(withLabels(leaseText, request.labels), params)
  if (leased) yield* moveLabels([leased])
  return leased
}

/** Looks for expired leases, and for tasks whose time has come since the last tick, when the queue is empty. */
function* leaseAfterSweep(context: PlaneContext, lease: NewLease): Command<Row | undefined> {
  const due = yield* nextDue()
  const isDue = due !== null && due <= context.now()
  if (!isDue && !(yield* findCandidate(lease.request))) return undefined
  yield* context.store.exclusive()
  if (isDue) yield* sweep(context)
  return yield* leaseAffordable(context, lease)
}

/** One claim blocks at most this many tasks; the next claim continues with the others. */
const mostBlocked = 100

/** Blocks each task whose own budget is spent, and tries the next one. */
function* leaseAffordable(context: PlaneContext, lease: NewLease): Command<Row | undefined> {
  for (let blocked = 0; blocked < mostBlocked; blocked += 1) {
    const task = yield* findCandidate(lease.request)
    const leased = task && (yield* leaseCandidate(context, lease))
    if (!task || leased) return leased
    const error = `its own budget of ${int(task, 'budget_tokens')} tokens is spent`
    yield* blockTask(context, int(task, 'id'), 'budget_blocked', null, { error })
  }
  return undefined
}

function* findCandidate(request: ClaimRequest): Command<Row | undefined> {
  return yield* queryOne(withLabels(`SELECT id, budget_tokens ${candidate}`, request.labels), candidateParams(request))
}

/**
 * Returns a text that contains `candidate` for a claim that asks for these labels. Most claims ask for none, and the database finds a text
 * that stays the same faster.
 */
function withLabels(text: string, labels: readonly string[]): string {
  if (labels.length === 0) return text
  const one = labelled([...new Set(labels)])
  return text.replace(candidate, () => `FROM tasks WHERE id IN ((${one}), (${one})) ${order}`)
}

function candidateParams({ role, agent_id: agentId, labels: repeated }: ClaimRequest): readonly Param[] {
  const labels = [...new Set(repeated)]
  if (labels.length === 0) return [role, role, agentId]
  return [...labelledParams(labels, role), ...labelledParams(labels, `${role} ${agentId}`)]
}

/**
 * Reads the tasks with the first label in the order of the queue; CROSS JOIN keeps SQLite from starting with the tasks. The row of the task
 * decides, because another claim of the same moment may have taken it.
 */
function labelled([, ...others]: readonly string[]): string {
  const rest = `(SELECT count(*) FROM labels AS more WHERE more.task_id = place.task_id AND more.label IN (${marks(others)})) = ?`
  return `SELECT tasks.id FROM labels AS place CROSS JOIN tasks WHERE tasks.id = place.task_id AND tasks.status = 'pending' AND place.label = ?
    AND place.queue = ? AND place.${isDueNow}${others.length === 0 ? '' : ` AND ${rest}`}
    ORDER BY place.queue_at, place.task_id LIMIT 1`
}

function labelledParams([label = '', ...others]: readonly string[], queue: string): readonly Param[] {
  return [label, queue, ...(others.length === 0 ? [] : [...others, others.length])]
}

const baseBackOffMs = 2_000
const mostBackOffMs = 15 * 60_000

/**
 * Extends the lease from now by its length at the claim; the lease of a cancelled task only once. It records no event, because beats are too
 * frequent. @throws PlaneRefusal lease_lost
 */
export function* beatLease(context: PlaneContext, caller: Caller, id: string): Command<Beat> {
  const task = yield* lockLease(context, caller, id)
  const isOver = flag(task, 'cancel_requested') && (yield* knowsCancel(task))
  const until = isOver ? int(task, 'available_at') : context.now() + int(task, 'lease_ms')
  yield ['UPDATE tasks SET available_at = ? WHERE id = ?', [until, int(task, 'id')]]
  yield ['UPDATE runs SET last_beat_at = ? WHERE id = ?', [context.now(), int(task, 'run_id')]]
  const remaining = yield* remainingFor(context, { role: text(task, 'role'), agentId: caller.id, taskId: int(task, 'id') })
  return { lease_until: new Date(until).toISOString(), cancel_requested: flag(task, 'cancel_requested'), budget_remaining: remaining }
}

/** Tells whether an earlier beat reported the cancel. The run then has the rest of that lease to end, so that none can continue for ever. */
function* knowsCancel(task: Row): Command<boolean> {
  const run = yield* queryOne('SELECT last_beat_at FROM runs WHERE id = ?', [int(task, 'run_id')])
  return run !== undefined && int(run, 'last_beat_at') > int(task, 'updated_at')
}

type Release = { readonly caller: Caller; readonly id: string; readonly request: ReleaseRequest }

/** Releases the lease of a run. @throws PlaneRefusal lease_lost; conflict for `cancelled` when no operator cancelled the task */
export function* releaseLease(context: PlaneContext, { caller, id, request }: Release): Command<Row> {
  const task = yield* lockLease(context, caller, id)
  const { outcome, error = null, tokens_used } = request
  const total = tokens_used === undefined ? {} : { total: tokens_used }
  const actor = signatureOf(caller)
  if (outcome === 'failed')
    return yield* endTask(context, task, { status: 'failed', actor, run: { state: 'failed', error, ...total }, error })
  if (outcome === 'cancelled' && !flag(task, 'cancel_requested'))
    throw new PlaneRefusal('conflict', `${id} was not cancelled; release it with another outcome`)
  const failures = int(task, 'failures') + (outcome === 'now' ? 0 : 1)
  return yield* retryOrEnd(context, task, { actor, failures, error, run: { state: 'released', error, ...total }, type: 'task.released' })
}

type NextAttempt = Required<Omit<Requeue, 'availableAt'>>

/** Ends a cancelled task, and one whose attempts are used up; returns any other to the queue, behind a back-off when the failure counts. */
function* retryOrEnd(context: PlaneContext, task: Row, { actor, failures, error, run, type }: NextAttempt): Command<Row> {
  if (flag(task, 'cancel_requested'))
    return yield* endTask(context, task, { status: 'cancelled', actor, run: { ...run, state: 'cancelled' }, error })
  const counts = failures > int(task, 'failures')
  if (counts && failures >= int(task, 'max_attempts')) {
    yield ['UPDATE tasks SET failures = ? WHERE id = ?', [failures, int(task, 'id')]]
    return yield* endTask(context, task, { status: 'dead', actor, run, error })
  }
  const wait = counts && run.state !== 'lost' ? backOffMs(failures - 1, context.random) : 0
  return yield* requeueTask(context, task, { type, actor, run, availableAt: context.now() + wait, failures, error })
}

/** Counts an expired lease as a failure and makes the task claimable at once: the lease was the wait. */
function* expireLease(context: PlaneContext, task: Row): Command<Row> {
  const error = `the lease of ${idOf('RUN', int(task, 'run_id'))} expired without a beat`
  const failures = int(task, 'failures') + 1
  return yield* retryOrEnd(context, task, { actor: 'clock', failures, error, run: { state: 'lost', error }, type: 'task.lease_expired' })
}

/** Returns a random time up to min(15 minutes, 2 s · 2^failures), so that tasks that failed together do not return together. */
function backOffMs(failures: number, random: () => number): number {
  return Math.floor(random() * Math.min(mostBackOffMs, baseBackOffMs * 2 ** failures))
}

/** Keeps sweeps small, so that claims run between them when thousands of leases expired at once. */
const atOnce = 50

/** This condition must be the literal of its index. */
const delayed = "status = 'pending' AND queue_at = 1000000000000000"

/** @returns when the next task is due; null when none is. A past time means that there is more to do already. */
export function* sweep(context: PlaneContext): Command<number | null> {
  const now = context.now()
  yield* shortenLeases(context)
  const expired = yield [`SELECT * FROM tasks WHERE status = 'running' AND available_at <= ? ORDER BY available_at LIMIT ${atOnce}`, [now]]
  for (const task of expired) yield* expireLease(context, task)
  const ready = yield [
    `UPDATE tasks SET queue_at = ${readyQueueAt} WHERE id IN
      (SELECT id FROM tasks WHERE ${delayed} AND available_at <= ? ORDER BY available_at LIMIT ${atOnce * 4}) RETURNING id, role, labels`,
    [now],
  ]
  yield* moveLabels(ready)
  for (const role of new Set(ready.map((row) => text(row, 'role')))) yield* context.store.announce(readyTopic(role))
  return yield* nextDue()
}

/** Shortens leases that are longer than the longest one, which were given before the clock was set back. Their holders extend them with the next beat. */
function* shortenLeases({ now, options }: PlaneContext): Command<void> {
  const longest = now() + options.leaseSeconds * 1_000
  yield ["UPDATE tasks SET available_at = ? + lease_ms WHERE status = 'running' AND available_at > ?", [now(), longest]]
}

/** Returns when the next lease expires or the next delayed task may run. It uses ORDER BY instead of min(), so that SQLite takes the small indexes. */
function* nextDue(): Command<number | null> {
  const rows = yield [
    `SELECT * FROM (SELECT available_at FROM tasks WHERE status = 'running' ORDER BY available_at LIMIT 1) AS lease
      UNION ALL SELECT * FROM (SELECT available_at FROM tasks WHERE ${delayed} ORDER BY available_at LIMIT 1) AS start`,
  ]
  return rows.length === 0 ? null : Math.min(...rows.map((row) => int(row, 'available_at')))
}
