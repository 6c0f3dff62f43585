/** Ends a task with the word of its agent, and closes the account of the run. */

import { type ActivityReply, activityReply } from '../../contract/activity-shapes.ts'
import type { Command, Row } from '../../contract/store-port.ts'
import { currentDay } from '../budget/budget-settings.ts'
import { countSpent } from '../budget/ledger.ts'
import { numberOf, type PlaneContext } from '../context.ts'
import { int, object, text } from '../row.ts'
import { completeTask } from '../tasks/end-task.ts'
import { hasEnded, lockTask } from '../tasks/task-change.ts'
import { keepActivity, type Posted, postDigest, runNumberOf } from './activity-row.ts'

type Completion = Posted<'task_completed'>

/** @throws PlaneRefusal not_found, forbidden; lease_lost, also for the shared secret while a run has the task; conflict for an ended task */
export function* postCompletion(context: PlaneContext, posted: Completion): Command<ActivityReply> {
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
