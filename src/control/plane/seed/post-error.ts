/** Notes an error of an agent, and escalates it: a task for the orchestrator that names where it comes from. */

import type { ActivityReply } from '../../contract/activity-shapes.ts'
import { signatureOf } from '../../contract/caller.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Command } from '../../contract/store-port.ts'
import { type TaskDraft, taskDraft } from '../../contract/task-shapes.ts'
import { currentDay } from '../budget/budget-settings.ts'
import { countSpent } from '../budget/ledger.ts'
import { reportTotal } from '../budget/reservations.ts'
import { idOf, idOrNull, numberOf, type PlaneContext } from '../context.ts'
import { recordEvent } from '../events/record-event.ts'
import { amount, first, int } from '../row.ts'
import { createTask } from '../tasks/create-task.ts'
import { lockLease } from '../tasks/lease.ts'
import { assertFewOpenTasks } from '../tasks/open-tasks.ts'
import { keepActivity, namedTask, type Posted, roleOfAgent, runNumberOf } from './activity-row.ts'

type ErrorPost = Posted<'error'>

const orchestrator = 'orchestrator'

/** The task itself goes on: the run ends it, or gives it back. @throws PlaneRefusal lease_lost, forbidden, not_found */
export function* postError(context: PlaneContext, posted: ErrorPost): Command<ActivityReply> {
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
  yield* assertFewOpen(erring)
  // Whoever has the shared secret may speak in any name.
  if (erring.caller.kind === 'seed') yield* assertFewOpenTasks(context, erring.caller, 1)
  return (yield* createTask(context, erring.caller, draft)).task_id
}

/** The orchestrator cannot work on more than this of one agent. */
const mostOpen = 100

/** What the shared secret reports in the name of an agent must not hold that agent up, and names that nobody added count as one. */
function* assertFewOpen({ caller, post: { agent_id: agentId }, role }: Erring): Command<void> {
  const begin = `{"escalation":{"agent_id":${JSON.stringify(agentId)},`
  const whose = role === null ? 'context LIKE ?' : 'SUBSTR(context, 1, ?) = ?'
  const open = yield* amount(
    `SELECT COUNT(*) AS value FROM tasks WHERE role = ? AND ${isOpen} AND created_by ${caller.kind === 'seed' ? '=' : '<>'} ? AND ${whose}`,
    [orchestrator, sharedSecret, ...(role === null ? ['{"escalation":{"agent_id":"%","role":null,%'] : [begin.length, begin])],
  )
  if (open >= mostOpen)
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
    ...(parent === null ? {} : { parent_task_id: parent }),
  })
}
