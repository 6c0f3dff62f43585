/** Keeps each post of activity, and answers with its number. */

import { sha256 } from '../../../kit/sha256.ts'
import type { ActivityPost, ActivityReply } from '../../contract/activity-shapes.ts'
import type { Caller } from '../../contract/caller.ts'
import type { Command, Row } from '../../contract/store-port.ts'
import { idOrNull, nextId, numberOf, type PlaneContext } from '../context.ts'
import { first, int, text } from '../row.ts'
import { requireReadable } from '../tasks/permission.ts'
import { readTask } from '../tasks/task-change.ts'

export type Posted<T extends ActivityPost['event_type'] = ActivityPost['event_type']> = {
  readonly caller: Caller
  readonly post: Extract<ActivityPost, { readonly event_type: T }>
}

export function runNumberOf(caller: Caller): number | null {
  return caller.kind === 'run' ? numberOf(caller.runId) : null
}

type Outcome = { readonly taskId?: number | null; readonly approvalId?: number | null; readonly escalationId?: string | null }

/** Tells equal posts from others; the output of a completion is kept in the result of its task. */
export function postDigest(post: ActivityPost): string {
  return sha256(JSON.stringify(post))
}

/** The reply is kept with the digest of the post, so that a repeated post is answered as the first one. */
export function* keepActivity(
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
export function* roleOfAgent(caller: Caller, agentId: string): Command<string | null> {
  if (caller.kind === 'run' || caller.kind === 'agent') return caller.role
  const row: Row | undefined = yield* first('SELECT role FROM agents WHERE id = ?', [agentId])
  return row ? text(row, 'role') : null
}

/** A task that somebody without its lease writes about; an agent only about those that it may read. @throws PlaneRefusal not_found, forbidden */
export function* namedTask({ caller, post }: Posted): Command<number | null> {
  if (post.task_id === undefined) return null
  const task = yield* readTask(post.task_id)
  if (caller.kind === 'agent') requireReadable(caller, task)
  return int(task, 'id')
}
