/** Takes the seed's three posts: a completion ends a task, an approval request asks an operator, an error escalates. */

import { sha256 } from '../../../kit/sha256.ts'
import { type ActivityPost, type ActivityReply, activityReply } from '../../contract/activity-shapes.ts'
import { type Caller, signatureOf } from '../../contract/caller.ts'
import type { Plane } from '../../contract/plane.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Command, Row } from '../../contract/store-port.ts'
import { type TaskDraft, taskDraft } from '../../contract/task-shapes.ts'
import { type Asker, openQuestions, operationDigest, requestApproval, sameQuestion } from '../approvals.ts'
import { currentDay } from '../budget/limits.ts'
import { assertBelievable, countSpent, reportTotal } from '../budget/reservations.ts'
import { amount, first, idOf, idOrNull, int, nextId, numberOf, object, type PlaneContext, text } from '../command.ts'
import { recordEvent } from '../events.ts'
import { assertFewOpenTasks, createTask } from '../tasks/create-task.ts'
import { completeTask } from '../tasks/end-task.ts'
import { besideRuns, hasEnded, lockLease, lockTask, readTask, requireReadable } from '../tasks/task-change.ts'

/** Each post is one transaction: it happens wholly or not at all. */
export function createActivity(context: PlaneContext): Plane['activity'] {
  return async (caller, post) => {
    assertOwnName(caller, post.agent_id)
    await assertBelievable(context, { caller, agentId: post.agent_id, tokens: tokensOf(post) })
    const beside = post.event_type === 'task_completed' ? besideRuns(caller) : undefined
    return await context.store.write(() => handle(context, { caller, post }), beside)
  }
}

/** The tokens that an approval request estimates are counted nowhere. */
function tokensOf(post: ActivityPost): number {
  if (post.event_type === 'task_completed') return post.result.tokens_used
  return post.event_type === 'error' ? post.tokens_used : 0
}

function* handle(
  context: PlaneContext,
  { caller, post }: { readonly caller: Caller; readonly post: ActivityPost },
): Command<ActivityReply> {
  if (post.event_type === 'task_completed') return yield* postCompletion(context, { caller, post })
  if (post.event_type === 'approval_request') return yield* postApprovalRequest(context, { caller, post })
  return yield* postError(context, { caller, post })
}

/** Only the shared secret and operators may speak for any agent. @throws PlaneRefusal forbidden */
function assertOwnName(caller: Caller, agentId: string): void {
  if (caller.kind === 'seed' || caller.kind === 'operator' || caller.id === agentId) return
  throw new PlaneRefusal('forbidden', `${signatureOf(caller)} cannot post activity as agent ${agentId}`)
}

type Completion = Posted<'task_completed'>

/** @throws PlaneRefusal not_found, forbidden; lease_lost, also for the shared secret while a run has the task; conflict for an ended task */
function* postCompletion(context: PlaneContext, posted: Completion): Command<ActivityReply> {
  const { caller, post } = posted
  const task = yield* lockTask(context, numberOf(post.task_id))
  const earlier = hasEnded(task) ? yield* sameCompletion(posted) : undefined
  if (earlier) return earlier
  yield* completeTask(context, {
    caller,
    task,
    skill: post.skill_executed,
    status: post.result.status,
    output: post.result.output,
    tokensUsed: post.result.tokens_used,
  })
  if (task.status !== 'running') yield* countWithoutRun(context, { task, agentId: post.agent_id, tokens: post.result.tokens_used })
  return yield* keepActivity(context, posted, { taskId: int(task, 'id') })
}

/** A run completes its task once, so any second completion of it is the first one again; others must say the same. */
function* sameCompletion({ caller, post }: Completion): Command<ActivityReply | undefined> {
  const rows = yield [
    "SELECT run_id, agent_id, body FROM activity WHERE task_id = ? AND event_type = 'task_completed' ORDER BY id DESC LIMIT 1",
    [numberOf(post.task_id)],
  ]
  const [row] = rows
  if (!row || row.agent_id !== post.agent_id) return undefined
  const { digest, reply } = object(row, 'body')
  const runId = runNumberOf(caller)
  const isSame = runId === null ? digest === postDigest(post) : row.run_id !== null && int(row, 'run_id') === runId
  return isSame ? activityReply.parse(reply) : undefined
}

type Unclaimed = { readonly task: Row; readonly agentId: string; readonly tokens: number }

/** A client of the seed does a task without claiming it: there is no run whose account could be closed. */
function* countWithoutRun(context: PlaneContext, { task, agentId, tokens }: Unclaimed): Command<void> {
  if (tokens === 0) return
  const taskId = int(task, 'id')
  yield ['UPDATE tasks SET tokens_used = tokens_used + ? WHERE id = ?', [tokens, taskId]]
  const { day } = yield* currentDay(context)
  const payer = { role: text(task, 'role'), agentId }
  yield* countSpent(context, { payer, day, tokens, reason: 'reported', taskId })
}

type Request = Posted<'approval_request'>

/** An operator cannot answer more than this of one agent. */
const mostOpen = 100
/** Above this the shared secret asks no more, whoever asked before. */
const mostOpenInAll = 1_000

/**
 * With a run token the task waits from here on, and the run is over. Without one nobody says which task waits, so `task_id` is only a
 * reference. The same question again gets the approval that it got before. @throws PlaneRefusal lease_lost, forbidden, not_found, too_many
 */
function* postApprovalRequest(context: PlaneContext, posted: Request): Command<ActivityReply> {
  const { caller, post } = posted
  const taskId = caller.kind === 'run' ? numberOf(caller.taskId) : yield* namedTask(posted)
  if (caller.kind === 'run' && post.task_id !== undefined && numberOf(post.task_id) !== taskId)
    throw new PlaneRefusal('forbidden', `this run token is for ${caller.taskId}, not for ${post.task_id}`)
  const earlier = yield* earlierApproval(posted, taskId)
  if (earlier !== undefined) return yield* keepActivity(context, posted, { taskId, approvalId: earlier })
  if (caller.kind === 'run') yield* lockLease(context, caller, caller.taskId)
  const role = yield* roleOfAgent(caller, post.agent_id)
  yield* assertFewOpen(caller, { agentId: post.agent_id, isRun: caller.kind === 'run', isKnown: role !== null })
  const approvalId = yield* requestApproval(context, {
    caller,
    agentId: post.agent_id,
    role,
    taskId,
    runId: runNumberOf(caller),
    operation: post.operation,
    reasoning: post.reasoning,
    estimatedTokens: post.estimated_tokens,
    details: post.details ?? {},
  })
  return yield* keepActivity(context, posted, { taskId, approvalId })
}

function* earlierApproval({ caller, post }: Request, taskId: number | null): Command<number | undefined> {
  const question = { operation: post.operation, details: post.details ?? {} }
  if (caller.kind === 'run') {
    const row = yield* sameQuestion({ ...question, runId: caller.runId })
    return row && int(row, 'id')
  }
  const row = yield* first(
    `SELECT id FROM approvals WHERE state = 'pending' AND agent_id = ? AND digest = ? AND run_id IS NULL AND COALESCE(task_id, 0) = ? LIMIT 1`,
    [post.agent_id, operationDigest(question.operation, question.details), taskId ?? 0],
  )
  return row && int(row, 'id')
}

function* assertFewOpen(caller: Caller, asker: Asker): Command<void> {
  const open = yield* openQuestions({ asker, most: mostOpen })
  if (open >= mostOpen) throw tooMany(`${open} questions ${asker.isKnown ? `of agent ${asker.agentId}` : 'of unknown agents'}`)
  // Whoever has the shared secret may ask in any name.
  const all = caller.kind === 'seed' ? yield* openQuestions({ most: mostOpenInAll }) : 0
  if (all >= mostOpenInAll) throw tooMany(`${all} questions of all agents`)
}

function tooMany(what: string): PlaneRefusal {
  return new PlaneRefusal('too_many', `${what} wait for an operator; wait for their answers`, { retry_after_ms: 60_000 })
}

type ErrorPost = Posted<'error'>

const orchestrator = 'orchestrator'

/** The task itself goes on: the run ends it, or gives it back. @throws PlaneRefusal lease_lost, forbidden, not_found */
function* postError(context: PlaneContext, posted: ErrorPost): Command<ActivityReply> {
  const { caller, post } = posted
  const role = yield* roleOfAgent(caller, post.agent_id)
  const taskId = caller.kind === 'run' ? yield* ownTask(context, posted) : yield* namedTask(posted)
  yield* countTokens(context, { caller, post, taskId, role })
  const { error_message, action_taken } = post
  yield* recordEvent(context, {
    ...{ type: 'agent.error', actor: signatureOf(caller), taskId, runId: runNumberOf(caller), agentId: post.agent_id, role },
    data: { error_message, action_taken },
  })
  // What the orchestrator itself cannot do has nobody above it but an operator, who sees the event.
  const escalationId = role === orchestrator ? null : yield* escalate(context, { caller, post, taskId, role })
  return yield* keepActivity(context, posted, { taskId, escalationId })
}

function* ownTask(context: PlaneContext, { caller, post }: ErrorPost): Command<number | null> {
  if (caller.kind !== 'run') return null
  if (post.task_id !== undefined && numberOf(post.task_id) !== numberOf(caller.taskId))
    throw new PlaneRefusal('forbidden', `this run token is for ${caller.taskId}, not for ${post.task_id}`)
  return int(yield* lockLease(context, caller, caller.taskId), 'id')
}

type Erring = ErrorPost & { readonly taskId: number | null; readonly role: string | null }

/** Of a run it is the total until now; of anybody else it is what this error cost, and no word about a task that a run holds. */
function* countTokens(context: PlaneContext, { caller, post, taskId, role }: Erring): Command<void> {
  const { tokens_used: tokens, agent_id: agentId } = post
  const runId = runNumberOf(caller)
  if (tokens === 0) return
  if (runId !== null && taskId !== null) {
    const run = yield* first('SELECT * FROM runs WHERE id = ?', [runId])
    if (run) yield* reportTotal(context, run, tokens)
    return
  }
  if (taskId !== null) yield ["UPDATE tasks SET tokens_used = tokens_used + ? WHERE id = ? AND status <> 'running'", [tokens, taskId]]
  const { day } = yield* currentDay(context)
  yield* countSpent(context, { payer: { role, agentId }, day, tokens, reason: 'reported', taskId })
}

const isOpen = "status IN ('pending', 'running', 'awaiting_approval', 'budget_blocked', 'blocked')"

/** An error that an open task of the orchestrator is about already makes no second one. @returns the id of the task */
function* escalate(context: PlaneContext, erring: Erring): Command<string> {
  const draft = escalationOf(erring)
  const open = yield* first(`SELECT id FROM tasks WHERE role = ? AND ${isOpen} AND context = ? ORDER BY id LIMIT 1`, [
    orchestrator,
    JSON.stringify(draft.context),
  ])
  if (open) return idOf('TASK', int(open, 'id'))
  yield* assertFewEscalations(erring)
  // Whoever has the shared secret may speak in any name.
  if (erring.caller.kind === 'seed') yield* assertFewOpenTasks(context, erring.caller, 1)
  return (yield* createTask(context, erring.caller, draft)).task_id
}

/** The orchestrator cannot work on more than this of one agent. */
const mostEscalations = 100

/** What the shared secret reports in the name of an agent must not hold that agent up, and names that nobody added count as one. */
function* assertFewEscalations({ caller, post: { agent_id: agentId }, role }: Erring): Command<void> {
  const begin = `{"escalation":{"agent_id":${JSON.stringify(agentId)},`
  const whose = role === null ? 'context LIKE ?' : 'SUBSTR(context, 1, ?) = ?'
  const open = yield* amount(
    `SELECT COUNT(*) AS value FROM tasks WHERE role = ? AND ${isOpen} AND created_by ${caller.kind === 'seed' ? '=' : '<>'} ? AND ${whose}`,
    [orchestrator, sharedSecret, ...(role === null ? ['{"escalation":{"agent_id":"%","role":null,%'] : [begin.length, begin])],
  )
  if (open >= mostEscalations)
    throw new PlaneRefusal(
      'too_many',
      `${open} escalations ${role === null ? 'of unknown agents' : `of agent ${agentId}`} are open; wait until the orchestrator has worked on them`,
      {
        retry_after_ms: 60_000,
      },
    )
}

/** As signatureOf spells it. */
const sharedSecret = 'shared secret'
const longestTitle = 200

function escalationOf({ caller, post, taskId, role }: Erring): TaskDraft {
  const { agent_id, error_message, action_taken } = post
  const title = `Escalation from ${agent_id}: ${error_message.replaceAll(/\s+/g, ' ').trim()}`
  const parent = idOrNull('TASK', taskId)
  return taskDraft.parse({
    title: title.slice(0, longestTitle).toWellFormed(),
    description: `${error_message}\n\nWhat ${agent_id} did: ${action_taken || 'nothing'}`,
    role: orchestrator,
    priority: 'high',
    labels: ['escalation'],
    context: { escalation: { agent_id, role, task_id: parent, run_id: idOrNull('RUN', runNumberOf(caller)), error_message, action_taken } },
    parent_task_id: parent ?? undefined,
  })
}

type Posted<T extends ActivityPost['event_type'] = ActivityPost['event_type']> = {
  readonly caller: Caller
  readonly post: Extract<ActivityPost, { readonly event_type: T }>
}

function runNumberOf(caller: Caller): number | null {
  return caller.kind === 'run' ? numberOf(caller.runId) : null
}

type Outcome = { readonly taskId?: number | null; readonly approvalId?: number | null; readonly escalationId?: string | null }

/** Tells equal posts from others; the output of a completion is kept in the result of its task. */
function postDigest(post: ActivityPost): string {
  return sha256(JSON.stringify(post))
}

/** The reply is kept with the digest of the post, so that a repeated post is answered as the first one. */
function* keepActivity(
  context: PlaneContext,
  { caller, post }: Posted,
  { taskId = null, approvalId = null, escalationId = null }: Outcome,
): Command<ActivityReply> {
  const id = yield* nextId('activity')
  const reply: ActivityReply = {
    ok: true,
    activity_id: id,
    task_id: idOrNull('TASK', taskId),
    approval_id: idOrNull('APPR', approvalId),
    escalation_task_id: escalationId,
  }
  yield [
    'INSERT INTO activity (id, at, event_type, agent_id, task_id, run_id, body) VALUES (?, ?, ?, ?, ?, ?, ?)',
    [id, context.now(), post.event_type, post.agent_id, taskId, runNumberOf(caller), JSON.stringify({ digest: postDigest(post), reply })],
  ]
  return reply
}

/** The role of an agent; null for one that was never added. */
function* roleOfAgent(caller: Caller, agentId: string): Command<string | null> {
  if (caller.kind === 'run' || caller.kind === 'agent') return caller.role
  const row: Row | undefined = yield* first('SELECT role FROM agents WHERE id = ?', [agentId])
  return row ? text(row, 'role') : null
}

/** A task that somebody without its lease writes about; an agent only about those that it may read. @throws PlaneRefusal not_found, forbidden */
function* namedTask({ caller, post }: Posted): Command<number | null> {
  if (post.task_id === undefined) return null
  const task = yield* readTask(post.task_id)
  if (caller.kind === 'agent') requireReadable(caller, task)
  return int(task, 'id')
}
