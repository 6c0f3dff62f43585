/** Creates tasks at most once a key: the reply is kept in the same transaction as the task. */

import type { Caller } from '../../contract/caller.ts'
import type { Once } from '../../contract/plane.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Beside, Command } from '../../contract/store-port.ts'
import { type Task, type TaskDraft, task as taskShape } from '../../contract/task-shapes.ts'
import type { PlaneContext } from '../context.ts'
import { first, text } from '../row.ts'
import { createTask } from './create-task.ts'
import { assertFewOpenTasks } from './open-tasks.ts'
import { requireCreator } from './permission.ts'

export type Created = { readonly task: Task; readonly replayed: boolean }
export type Creating = { readonly caller: Caller; readonly draft: TaskDraft; readonly once?: Once | undefined }

/** @throws PlaneRefusal idempotency_mismatch when the key came with another request before; too_many */
export function* createTaskOnce(context: PlaneContext, { caller, draft, once }: Creating): Command<Created> {
  requireCreator(caller)
  if (!once) return { task: yield* createCounted(context, caller, draft), replayed: false }
  const owner = ownerOf(caller)
  const kept = yield* first('SELECT digest, body FROM replies WHERE owner = ? AND key = ?', [owner, once.key])
  if (kept && kept.digest !== once.digest)
    throw new PlaneRefusal('idempotency_mismatch', `Idempotency-Key "${once.key}" was used for another request; use a new key`)
  if (kept) return { task: taskShape.parse(JSON.parse(text(kept, 'body'))), replayed: true }
  const task = yield* createCounted(context, caller, draft)
  yield [
    'INSERT INTO replies (owner, key, digest, status, body, at) VALUES (?, ?, ?, 201, ?, ?)',
    [owner, once.key, once.digest, JSON.stringify(task), context.now()],
  ]
  return { task, replayed: false }
}

/** Not for a request that was answered before. */
function* createCounted(context: PlaneContext, caller: Caller, draft: TaskDraft): Command<Task> {
  yield* assertFewOpenTasks(context, caller, 1)
  return yield* createTask(context, caller, draft)
}

/** A task that waits for others must not miss that one of them ends. The open tasks of an agent are counted, so its creates take turns. */
export function besideCreates(caller: Caller, draft: TaskDraft, once: Once | undefined): Beside | undefined {
  if (draft.depends_on.length > 0) return undefined
  if (caller.kind === 'agent') return { kind: 'create', key: ownerOf(caller) }
  return { kind: 'create', key: once ? `${ownerOf(caller)} ${once.key}` : crypto.randomUUID() }
}

const ownerOf = (caller: Caller) => `${caller.kind} ${caller.id}`
const keptMs = 24 * 3_600_000

/** Keys are remembered for a day. */
export function* forgetReplies(context: PlaneContext): Command<void> {
  yield ['DELETE FROM replies WHERE at < ?', [context.now() - keptMs]]
}
