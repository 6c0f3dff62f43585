/** Asks an operator on behalf of an agent. */

import type { ActivityReply } from '../../contract/activity-shapes.ts'
import type { Caller } from '../../contract/caller.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Command } from '../../contract/store-port.ts'
import { type Asker, openQuestions, operationDigest, requestApproval, sameQuestion } from '../approvals/request-approval.ts'
import { numberOf, type PlaneContext } from '../context.ts'
import { first, int } from '../row.ts'
import { lockLease } from '../tasks/lease.ts'
import { keepActivity, namedTask, type Posted, roleOfAgent, runNumberOf } from './activity-row.ts'

type Request = Posted<'approval_request'>

/** An operator cannot answer more than this of one agent. */
const mostOpen = 100
/** Above this the shared secret asks no more, whoever asked before. */
const mostOpenInAll = 1_000

/**
 * With a run token the task waits from here on, and the run is over. Without one nobody says which task waits, so `task_id` is only a
 * reference. The same question again gets the approval that it got before. @throws PlaneRefusal lease_lost, forbidden, not_found, too_many
 */
export function* postApprovalRequest(context: PlaneContext, posted: Request): Command<ActivityReply> {
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
