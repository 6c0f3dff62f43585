/** Takes the three posts of the Clawdie protocol ("the seed"): a completion ends a task, an approval request asks an operator, an error escalates. */

import { sha256 } from '../../../kit/sha256.ts'
import { type ActivityPost, type ActivityReply, activityReply } from '../../contract/activity-shapes.ts'
import { type Caller, signatureOf } from '../../contract/caller.ts'
import type { Plane } from '../../contract/plane.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Command, Row } from '../../contract/store-port.ts'
import { type TaskDraft, taskDraft } from '../../contract/task-shapes.ts'
import { openQuestions, operationDigest, type QuestionOwner, requestApproval, sameQuestion } from '../approvals.ts'
import { currentDay } from '../budget/limits.ts'
import { assertReportLimit, countSpent, reportTotal } from '../budget/reservations.ts'
import { idOf, idOrNull, int, nextId, numberOf, object, type PlaneContext, queryNumber, queryOne, text } from '../command.ts'
import { recordEvent } from '../events.ts'
import { assertFewOpenTasks, createTask } from '../tasks/create-task.ts'
import { completeTask } from '../tasks/end-task.ts'
import { hasEnded, lockLease, lockTask, readTask, requireReadable, runBatchKey } from '../tasks/task-change.ts'

/** Handles each post in one transaction: completely or not at all. */
export function createActivity(context: PlaneContext): Plane['activity'] {
  return async (caller, post) => {
    assertOwnName(caller, post.agent_id)
    await assertReportLimit(context, { caller, agentId: post.agent_id, tokens: tokensOf(post) })
    const batchKey = post.event_type === 'task_completed' ? runBatchKey(caller) : undefined
    return await context.store.write(() => handle(context, { caller, post }), batchKey)
  }
}

/** Returns the tokens that a post reports. The estimate of an approval request counts nowhere. */
function tokensOf(post: ActivityPost): number {
  if (post.event_type === 'task_completed') return post.result.tokens_used
  return post.event_type === 'error' ? post.tokens_used : 0
}

function* handle(context: PlaneContext, { caller, post }: PostOf): Command<ActivityReply> {
  if (post.event_type === 'task_completed') return yield* postCompletion(context, { caller, post })
  if (post.event_type === 'approval_request') return yield* postApprovalRequest(context, { caller, post })
  return yield* postError(context, { caller, post })
}

/** Lets only the shared secret and operators post for any agent. @throws PlaneRefusal forbidden */
function assertOwnName(caller: Caller, agentId: string): void {
  if (caller.kind === 'seed' || caller.kind === 'operator' || caller.id === agentId) return
  throw new PlaneRefusal('forbidden', `${signatureOf(caller)} cannot post activity as agent ${agentId}`)
}

type CompletionPost = PostOf<'task_completed'>

/** Completes a task. @throws PlaneRefusal not_found, forbidden; lease_lost, also for the shared secret while a run has the task; conflict for an ended task */
function* postCompletion(context: PlaneContext, posted: CompletionPost): Command<ActivityReply> {
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
  return yield* storeActivity(context, posted, { taskId: int(task, 'id') })
}

/** Returns the reply to an earlier completion of the same run; where no run is named, to one with the same content. */
function* sameCompletion({ caller, post }: CompletionPost): Command<ActivityReply | undefined> {
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

type CostWithoutRun = { readonly task: Row; readonly agentId: string; readonly tokens: number }

/** Counts the tokens of a client that does tasks without claiming them, so that there is no run to count them for. */
function* countWithoutRun(context: PlaneContext, { task, agentId, tokens }: CostWithoutRun): Command<void> {
  if (tokens === 0) return
  const taskId = int(task, 'id')
  yield ['UPDATE tasks SET tokens_used = tokens_used + ? WHERE id = ?', [tokens, taskId]]
  const { day } = yield* currentDay(context)
  const payer = { role: text(task, 'role'), agentId }
  yield* countSpent(context, { payer, day, tokens, reason: 'reported', taskId })
}

type ApprovalPost = PostOf<'approval_request'>

/** One operator cannot answer more questions of one agent. */
const mostOpen = 100
/** The shared secret asks no more questions once all agents together have this many. */
const mostOpenInAll = 1_000

/**
 * Asks an operator. With a run token the task waits from here on and the run has ended; without one `task_id` is only a reference, because
 * nobody names the task that waits. A repeated question gets the approval of the first. @throws PlaneRefusal lease_lost, forbidden,
 * not_found, too_many
 */
function* postApprovalRequest(context: PlaneContext, posted: ApprovalPost): Command<ActivityReply> {
  const { caller, post } = posted
  const taskId = yield* namedTask(posted)
  const earlier = yield* earlierApproval(posted, taskId)
  if (earlier !== undefined) return yield* storeActivity(context, posted, { taskId, approvalId: earlier })
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
  return yield* storeActivity(context, posted, { taskId, approvalId })
}

function* earlierApproval({ caller, post }: ApprovalPost, taskId: number | null): Command<number | undefined> {
  const question = { operation: post.operation, details: post.details ?? {} }
  if (caller.kind === 'run') {
    const row = yield* sameQuestion(caller.runId, question)
    return row && int(row, 'id')
  }
  const row = yield* queryOne(
    `SELECT id FROM approvals WHERE state = 'pending' AND agent_id = ? AND digest = ? AND run_id IS NULL AND COALESCE(task_id, 0) = ? LIMIT 1`,
    [post.agent_id, operationDigest(question.operation, question.details), taskId ?? 0],
  )
  return row && int(row, 'id')
}

function* assertFewOpen(caller: Caller, asker: QuestionOwner): Command<void> {
  const open = yield* openQuestions({ asker, most: mostOpen })
  if (open >= mostOpen) throw tooMany(`${open} questions ${asker.isKnown ? `of agent ${asker.agentId}` : 'of unknown agents'}`)
  // The shared secret may ask in any name, so its questions have a common limit too.
  const all = caller.kind === 'seed' ? yield* openQuestions({ most: mostOpenInAll }) : 0
  if (all >= mostOpenInAll) throw tooMany(`${all} questions of all agents`)
}

function tooMany(what: string): PlaneRefusal {
  return new PlaneRefusal('too_many', `${what} wait for an operator; wait for their answers`, { retry_after_ms: 60_000 })
}

type ErrorPost = PostOf<'error'>

const orchestrator = 'orchestrator'

/** Records an error; the task stays with its run, which ends or releases it. @throws PlaneRefusal lease_lost, forbidden, not_found */
function* postError(context: PlaneContext, posted: ErrorPost): Command<ActivityReply> {
  const { caller, post } = posted
  const role = yield* roleOfAgent(caller, post.agent_id)
  const taskId = yield* namedTask(posted)
  if (caller.kind === 'run') yield* lockLease(context, caller, caller.taskId)
  yield* countTokens(context, { caller, post, taskId, role })
  const { error_message, action_taken } = post
  yield* recordEvent(context, {
    ...{ type: 'agent.error', actor: signatureOf(caller), taskId, runId: runNumberOf(caller), agentId: post.agent_id, role },
    data: { error_message, action_taken },
  })
  // Above the orchestrator there is only the operator, who sees the event.
  const escalationId = role === orchestrator ? null : yield* escalate(context, { caller, post, taskId, role })
  return yield* storeActivity(context, posted, { taskId, escalationId })
}

type ErrorReport = ErrorPost & { readonly taskId: number | null; readonly role: string | null }

/**
 * Counts the tokens of an error: for a run they are its total until now, for anyone else the cost of this error, which does not touch a task
 * that a run has.
 */
function* countTokens(context: PlaneContext, { caller, post, taskId, role }: ErrorReport): Command<void> {
  const { tokens_used: tokens, agent_id: agentId } = post
  const runId = runNumberOf(caller)
  if (tokens === 0) return
  if (runId !== null && taskId !== null) {
    const run = yield* queryOne('SELECT * FROM runs WHERE id = ?', [runId])
    if (run) yield* reportTotal(context, run, tokens)
    return
  }
  if (taskId !== null) yield ["UPDATE tasks SET tokens_used = tokens_used + ? WHERE id = ? AND status <> 'running'", [tokens, taskId]]
  const { day } = yield* currentDay(context)
  yield* countSpent(context, { payer: { role, agentId }, day, tokens, reason: 'reported', taskId })
}

const isOpen = "status IN ('pending', 'running', 'awaiting_approval', 'budget_blocked', 'blocked')"

/** Creates a task for the orchestrator, unless an open one is about the same error. @returns the id of the task */
function* escalate(context: PlaneContext, erring: ErrorReport): Command<string> {
  const draft = escalationOf(erring)
  const open = yield* queryOne(`SELECT id FROM tasks WHERE role = ? AND ${isOpen} AND context = ? ORDER BY id LIMIT 1`, [
    orchestrator,
    JSON.stringify(draft.context),
  ])
  if (open) return idOf('TASK', int(open, 'id'))
  yield* assertFewEscalations(erring)
  // The shared secret may post in any name, so its open tasks have a common limit too.
  if (erring.caller.kind === 'seed') yield* assertFewOpenTasks(context, erring.caller, 1)
  return (yield* createTask(context, erring.caller, draft)).task_id
}

/** One orchestrator cannot work on more escalations of one agent. */
const mostEscalations = 100

/**
 * Limits the open escalations of an agent. Posts with the shared secret in the name of an agent do not count against the agent's own, and all
 * names that no operator added share one count.
 */
function* assertFewEscalations({ caller, post: { agent_id: agentId }, role }: ErrorReport): Command<void> {
  const begin = `{"escalation":{"agent_id":${JSON.stringify(agentId)},`
  const whose = role === null ? 'context LIKE ?' : 'SUBSTR(context, 1, ?) = ?'
  const open = yield* queryNumber(
    `SELECT COUNT(*) AS value FROM tasks WHERE role = ? AND ${isOpen} AND created_by ${caller.kind === 'seed' ? '=' : '<>'} ? AND ${whose}`,
    [orchestrator, sharedSecret, ...(role === null ? ['{"escalation":{"agent_id":"%","role":null,%'] : [begin.length, begin])],
  )
  if (open >= mostEscalations)
    throw new PlaneRefusal(
      'too_many',
      `${open} escalations ${role === null ? 'of unknown agents' : `of agent ${agentId}`} are open; wait until the orchestrator has worked on them`,
      { retry_after_ms: 60_000 },
    )
}

/** This is what signatureOf returns for the shared secret. */
const sharedSecret = 'shared secret'
const longestTitle = 200

function escalationOf({ caller, post, taskId, role }: ErrorReport): TaskDraft {
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

type PostOf<T extends ActivityPost['event_type'] = ActivityPost['event_type']> = {
  readonly caller: Caller
  readonly post: Extract<ActivityPost, { readonly event_type: T }>
}

function runNumberOf(caller: Caller): number | null {
  return caller.kind === 'run' ? numberOf(caller.runId) : null
}

type PostOutcome = { readonly taskId?: number | null; readonly approvalId?: number | null; readonly escalationId?: string | null }

/** Returns a digest that only equal posts share. The result of the task stores the output of a completion. */
function postDigest(post: ActivityPost): string {
  return sha256(JSON.stringify(post))
}

/** Stores the reply with the digest of the post, so that a repeated post gets the first reply. */
function* storeActivity(
  context: PlaneContext,
  { caller, post }: PostOf,
  { taskId = null, approvalId = null, escalationId = null }: PostOutcome,
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

/** Returns the role of an agent; null for one that no operator added. */
function* roleOfAgent(caller: Caller, agentId: string): Command<string | null> {
  if (caller.kind === 'run' || caller.kind === 'agent') return caller.role
  const row: Row | undefined = yield* queryOne('SELECT role FROM agents WHERE id = ?', [agentId])
  return row ? text(row, 'role') : null
}

/** Finds the task of a post: that of the run, or the one that is named; an agent may name what it may read. @throws PlaneRefusal not_found, forbidden */
function* namedTask({ caller, post }: PostOf): Command<number | null> {
  if (caller.kind === 'run' && post.task_id !== undefined && numberOf(post.task_id) !== numberOf(caller.taskId))
    throw new PlaneRefusal('forbidden', `this run token is for ${caller.taskId}, not for ${post.task_id}`)
  if (caller.kind === 'run') return numberOf(caller.taskId)
  if (post.task_id === undefined) return null
  const task = yield* readTask(post.task_id)
  if (caller.kind === 'agent') requireReadable(caller, task)
  return int(task, 'id')
}
