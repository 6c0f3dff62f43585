/** Offers the tasks of the plane: each method is one command, and so one transaction. */

import type { Caller } from '../../contract/caller.ts'
import type { TaskPlane } from '../../contract/plane.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Command, Row } from '../../contract/store-port.ts'
import type { Task, TaskDraft } from '../../contract/task-shapes.ts'
import { assertBelievable } from '../budget/reservations.ts'
import { numberOf, type PlaneContext } from '../command.ts'
import { beginEffect, endEffect, listEffects, resolveEffects } from '../effects.ts'
import { assertFewOpenTasks, besideCreates, createTask, createTaskOnce, forgetReplies, requireCreator } from '../tasks/create-task.ts'
import { cancelTask, editTask, retryTask } from '../tasks/edit-task.ts'
import { besideRuns } from '../tasks/lease.ts'
import { listTasks } from '../tasks/list-tasks.ts'
import { fullTask, readTask, requireReadable } from '../tasks/task-change.ts'
import { beatLease, releaseLease, sweep } from './keep-lease.ts'
import { createWaitingClaims } from './waiting-claims.ts'

/** `tick`: the part of `Plane.tick` that concerns tasks. */
export function createTaskPlane(context: PlaneContext): TaskPlane & { tick(): Promise<void> } {
  const { read, write } = context.store
  const waiting = createWaitingClaims(context)
  return {
    create: (caller, draft, once) => write(() => createTaskOnce(context, { caller, draft, once }), besideCreates(caller, draft, once)),
    createMany: (caller, drafts) => write(() => createAll(context, caller, drafts)),
    get: (caller, id) => read(() => getTask(caller, id)),
    list: (caller, query) => read(() => listTasks(caller, query)),
    edit: (caller, id, patch, version) => write(() => shown(editTask(context, { caller, id, patch, version }))),
    claim: (caller, request, gone) => waiting.claim({ caller, request, gone }),
    beat: (caller, id) => write(() => beatLease(context, caller, id), besideRuns(caller)),
    async release(caller, id, request) {
      if (caller.kind === 'run') await assertBelievable(context, { caller, agentId: caller.id, tokens: request.tokens_used ?? 0 })
      return await write(() => shown(releaseLease(context, { caller, id, request })), besideRuns(caller))
    },
    cancel: (caller, id, note) => write(() => shown(cancelTask(context, { caller, id, note }))),
    retry: (caller, id, note) => write(() => shown(retryTask(context, { caller, id, note }))),
    resolve: (caller, id, request) => write(() => shown(resolveEffects(context, { caller, id, request }))),
    effects: (caller, id) => read(() => effectsOf(caller, id)),
    beginEffect: (caller, id, request) => write(() => beginEffect(context, { caller, id }, request), besideRuns(caller)),
    endEffect: (caller, id, key, result) => write(() => endEffect(context, { caller, id }, key, result), besideRuns(caller)),
    tick: () => tick(context),
  }
}

function* shown(change: Command<Row>): Command<Task> {
  return yield* fullTask(yield* change)
}

const mostAtOnce = 1_000

function* createAll(context: PlaneContext, caller: Caller, drafts: readonly TaskDraft[]): Command<readonly Task[]> {
  requireCreator(caller)
  if (drafts.length > mostAtOnce)
    throw new PlaneRefusal('too_large', `${drafts.length} tasks are more than ${mostAtOnce} at once; send them in several requests`)
  yield* assertFewOpenTasks(context, caller, drafts.length)
  const tasks: Task[] = []
  for (const draft of drafts) tasks.push(yield* createTask(context, caller, draft))
  return tasks
}

function* getTask(caller: Caller, id: string): Command<Task> {
  const row = yield* readTask(id)
  requireReadable(caller, row)
  return yield* fullTask(row)
}

function* effectsOf(caller: Caller, id: string) {
  requireReadable(caller, yield* readTask(id))
  return yield* listEffects(numberOf(id))
}

/** Several sweeps, while there is more to do than one takes. */
async function tick(context: PlaneContext): Promise<void> {
  for (let rounds = 0; rounds < 20; rounds += 1) {
    const { nextAt } = await context.store.write(() => sweep(context))
    if (nextAt === null || nextAt > context.now()) break
  }
  await context.store.write(() => forgetReplies(context))
}
