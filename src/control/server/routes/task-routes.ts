/** Serves tasks: their creation and changes, claims, beats and releases of workers, approvals and decisions, and effects on the world. */

import { z } from '@hono/zod-openapi'
import { json, plain, requestDigest } from '../../../http/api.ts'
import { HttpError } from '../../../http/http-error.ts'
import { keyOf } from '../../../http/idempotency.ts'
import type { Connection } from '../../../http/listen.ts'
import type { QuickAsked, QuickRoutes } from '../../../http/quick-routes.ts'
import { atEnd } from '../../../kit/errors.ts'
import { approval, approvedOperation, decisionRequest, seedApprovals, seedTask } from '../../contract/activity-shapes.ts'
import type { Caller } from '../../contract/caller.ts'
import {
  beat,
  type Claim,
  claim,
  claimRequest,
  effect,
  effectKey,
  effectReply,
  effectRequest,
  effectResult,
  releaseRequest,
  resolveRequest,
  task,
  taskDraft,
  taskPatch,
} from '../../contract/task-shapes.ts'
import { addRoute, type ControlApi, type ControlServer, controlRoute, guardOf, prefix } from '../control-route.ts'
import {
  approvalAt,
  approvalListQuery,
  assertFullView,
  effectAt,
  isSeedQuery,
  note,
  nothing,
  taskAt,
  taskListQuery,
} from '../request-shapes.ts'

const page = z.object({ tasks: z.array(task), next: z.nullable(z.string()), counts: z.record(z.string(), z.int()) })
const batch = z.strictObject({ tasks: z.array(taskDraft).min(1).max(1_000) })
const ifMatch = z.object({ 'if-match': z.optional(z.string().max(64)) })

export function taskRoutes(app: ControlApi, { plane }: ControlServer, quick: QuickRoutes<Caller>): void {
  const query = taskListQuery
  addRoute(app, 'get', '/tasks', {
    summary: 'Tasks: with ?role= alone the queue of that role, else a page of all that match',
    query,
    gives: [
      z.union([z.object({ tasks: z.array(seedTask) }), page]),
      'The tasks; "next" is the "after" of the next page, also behind a page of a search (q) that found nothing',
    ],
    async answer({ caller, query: { view: _, ...asked }, spelled }) {
      if (isSeedQuery(spelled(), Object.keys(query.shape), 'role')) return await plane.seed.tasks(caller, asked.role)
      assertFullView(caller)
      return await plane.tasks.list(caller, asked)
    },
  })
  quick.add({
    config: {
      path: `${prefix}/tasks`,
      summary: 'Create a task; the same Idempotency-Key creates it once',
      responses: { 201: json(task, 'It is in the queue, or waits for what it depends on') },
    },
    guard: guardOf('POST /tasks', 'itself'),
    body: taskDraft,
    asks: 'The task',
    async answer(draft, asked) {
      const { task, replayed } = await plane.tasks.create(asked.caller, draft, onceOf(asked))
      return { status: 201, body: task, headers: replayed ? { 'idempotency-replayed': 'true' } : undefined }
    },
  })
  addRoute(app, 'post', '/tasks/batch', {
    summary: 'Create up to 1,000 tasks: all or none',
    body: [batch, 'The tasks'],
    gives: [z.object({ tasks: z.array(task) }), 'In the order of the request'],
    status: 201,
    answer: async ({ caller, body }) => ({ tasks: await plane.tasks.createMany(caller, body.tasks) }),
  })
  app.openapi(
    controlRoute({
      method: 'get',
      path: `${prefix}/tasks/{id}`,
      summary: 'One task',
      request: { params: taskAt },
      responses: { 200: json(task, 'The task; its version is the entity tag') },
    }),
    async (c) => {
      const current = await plane.tasks.get(c.var.caller, c.req.valid('param').id)
      c.header('etag', `"${current.version}"`)
      return c.json(plain(current), 200)
    },
  )
  app.openapi(
    controlRoute({
      method: 'patch',
      path: `${prefix}/tasks/{id}`,
      summary: 'Change a task; with If-Match only in that version',
      request: { params: taskAt, headers: ifMatch, body: json(taskPatch, 'What changes') },
      responses: { 200: json(task, 'The task now'), 409: { description: 'Another version, or a state in which it cannot be changed' } },
    }),
    async (c) => {
      const version = versionOf(c.req.valid('header')['if-match'])
      const edited = await plane.tasks.edit(c.var.caller, c.req.valid('param').id, c.req.valid('json'), version)
      c.header('etag', `"${edited.version}"`)
      return c.json(plain(edited), 200)
    },
  )
}

function onceOf(asked: QuickAsked<Caller>) {
  const key = keyOf(asked)
  const { path, body } = asked.env
  return key === undefined ? undefined : { key, digest: requestDigest({ method: 'POST', path }, body) }
}

/** @throws HttpError 400 for anything but a version or "*" */
function versionOf(ifMatch: string | undefined): number | undefined {
  if (ifMatch === undefined || ifMatch === '*') return undefined
  const [, digits] = /^(?:"(\d{1,15})"|(\d{1,15}))$/.exec(ifMatch)?.filter((part) => part !== undefined) ?? []
  if (digits !== undefined) return Number(digits)
  throw new HttpError(
    400,
    'bad_request',
    `If-Match: ${JSON.stringify(ifMatch)} is not a version of a task; send the number of its "version"`,
  )
}

export function claimRoutes(app: ControlApi, server: ControlServer, quick: QuickRoutes<Caller>): void {
  const { plane } = server
  quick.add({
    config: {
      path: `${prefix}/tasks/claim`,
      summary: 'Claim the next task of a role; waits up to wait_ms for one',
      responses: { 200: json(claim, 'The task with its lease'), 204: { description: 'There was none in that time' } },
    },
    guard: guardOf('POST /tasks/claim', 'secret'),
    body: claimRequest,
    asks: 'For whom',
    async answer(request, { caller, env }) {
      const claimed = await claimFor(server, caller, { request, connection: env.connection })
      return claimed ? { status: 200, body: claimed } : { status: 204 }
    },
  })
  addRoute(app, 'post', '/tasks/{id}/beat', {
    summary: 'Keep the lease, and learn whether the task is cancelled',
    params: taskAt,
    body: [nothing, 'Nothing'],
    gives: [beat, 'Until when'],
    others: { 409: 'lease_lost: stop, nothing more counts' },
    answer: ({ caller, params }) => plane.tasks.beat(caller, params.id),
  })
  addRoute(app, 'post', '/tasks/{id}/release', {
    summary: 'Give the task back',
    params: taskAt,
    body: [releaseRequest, 'How it ended'],
    gives: [task, 'The task now'],
    others: { 409: 'lease_lost' },
    answer: ({ caller, params, body }) => plane.tasks.release(caller, params.id, body),
  })
}

type ClientClaim = { readonly request: Parameters<ControlServer['plane']['tasks']['claim']>[1]; readonly connection: Connection }

/** Releases a task at once when its client left before the claim ended. */
async function claimFor(server: ControlServer, caller: Caller, asked: ClientClaim): Promise<Claim | undefined> {
  const { request, connection } = asked
  const { tasks } = server.plane
  const claimed = await (request.wait_ms === 0 ? tasks.claim(caller, request, connection.disconnected) : waitFor(server, caller, asked))
  if (!claimed || !connection.disconnected.aborted) return claimed
  await tasks.release(holderOf(claimed, request.agent_id), claimed.task.task_id, { outcome: 'now' })
  return undefined
}

async function waitFor(
  { plane, stopping, counters }: ControlServer,
  caller: Caller,
  { request, connection }: ClientClaim,
): Promise<Claim | undefined> {
  const ended = counters.began('poll', caller)
  connection.stay()
  using _end = atEnd(ended)
  return await plane.tasks.claim(caller, request, AbortSignal.any([connection.disconnected, stopping]))
}

function holderOf({ task, run_id, attempt }: Claim, agentId: string): Caller {
  return { kind: 'run', id: agentId, role: task.role, taskId: task.task_id, runId: run_id, attempt }
}

export function decisionRoutes(app: ControlApi, { plane }: ControlServer): void {
  for (const [verb, summary, refusal] of [
    ['cancel', 'Cancel a task; a running one learns it with its next beat', 'It has ended'],
    ['retry', 'Put a task that has failed, died or waits back into the queue', 'Its state does not allow it'],
  ] as const)
    addRoute(app, 'post', `/tasks/{id}/${verb}`, {
      summary,
      params: taskAt,
      body: [note, 'Why'],
      gives: [task, 'The task now'],
      others: { 409: refusal },
      answer: ({ caller, params, body }) => plane.tasks[verb](caller, params.id, body.note),
    })
  addRoute(app, 'post', '/tasks/{id}/resolve', {
    summary: 'Say what became of an effect in doubt: done, redo or give_up',
    params: taskAt,
    body: [resolveRequest, 'The decision'],
    gives: [task, 'The task now'],
    others: { 409: 'Nothing of it is in doubt' },
    answer: ({ caller, params, body }) => plane.tasks.resolve(caller, params.id, body),
  })
}

const doneResult = z.strictObject({ result: z.optional(effectResult) })
const doneWithKey = z.strictObject({ key: effectKey, result: z.optional(effectResult) })

export function effectRoutes(app: ControlApi, { plane }: ControlServer): void {
  addRoute(app, 'get', '/tasks/{id}/effects', {
    summary: 'The effects of a task',
    params: taskAt,
    gives: [z.object({ effects: z.array(effect) }), 'The effects, oldest first'],
    answer: async ({ caller, params }) => ({ effects: await plane.tasks.effects(caller, params.id) }),
  })
  addRoute(app, 'post', '/tasks/{id}/effects', {
    summary: 'Announce an effect before it happens',
    params: taskAt,
    body: [effectRequest, 'The effect; its key is unique in the task'],
    gives: [effectReply, 'new: do it; done: here is its result; in_doubt: stop'],
    answer: ({ caller, params, body }) => plane.tasks.beginEffect(caller, params.id, body),
  })
  addRoute(app, 'post', '/tasks/{id}/effects/{key}/done', {
    summary: 'Say that an effect happened',
    params: effectAt,
    body: [doneResult, 'Its result'],
    gives: [effectReply, 'It is kept'],
    answer: ({ caller, params, body }) => plane.tasks.endEffect(caller, params.id, params.key, body.result),
  })
  addRoute(app, 'post', '/tasks/{id}/effects/done', {
    summary: 'Say that an effect happened, for keys that do not fit into a path',
    params: taskAt,
    body: [doneWithKey, 'Its key and its result'],
    gives: [effectReply, 'It is kept'],
    answer: ({ caller, params, body }) => plane.tasks.endEffect(caller, params.id, body.key, body.result),
  })
}

const approvalPage = z.object({ approvals: z.array(approval), next: z.nullable(z.string()) })
const use = z.strictObject({ digest: z.optional(z.string().regex(/^[0-9a-f]{64}$/, 'a digest is 64 hex digits')) })

/** Lists questions to operators, takes their decisions, and returns an approved operation to the caller that may use it. */
export function approvalRoutes(app: ControlApi, { plane }: ControlServer): void {
  const query = approvalListQuery
  addRoute(app, 'get', '/approvals', {
    summary: 'Approvals: with ?agent_id= alone those of that agent, pending and approved, else a page of all that match',
    query,
    gives: [z.union([seedApprovals, approvalPage]), 'The approvals; "next" is the "after" of the next page'],
    async answer({ caller, query: { view: _, ...asked }, spelled }) {
      if (isSeedQuery(spelled(), Object.keys(query.shape), 'agent_id')) return await plane.seed.approvals(caller, asked.agent_id)
      assertFullView(caller)
      return await plane.approvals.list(caller, asked)
    },
  })
  addRoute(app, 'get', '/approvals/{id}', {
    summary: 'One approval',
    params: approvalAt,
    gives: [approval, 'The approval'],
    answer: ({ caller, params }) => plane.approvals.get(caller, params.id),
  })
  addRoute(app, 'post', '/approvals/{id}/decision', {
    summary: 'Approve, reject or ask for another plan; the waiting task continues in the same transaction',
    params: approvalAt,
    body: [decisionRequest, 'The decision'],
    gives: [approval, 'It counts'],
    others: { 409: 'It was decided before; details say how' },
    answer: ({ caller, params, body }) => plane.approvals.decide(caller, params.id, body),
  })
  addRoute(app, 'post', '/approvals/{id}/use', {
    summary: 'Use an approval, once: the operation exactly as it was approved',
    params: approvalAt,
    body: [use, 'The digest of what is about to be done'],
    gives: [approvedOperation, 'Do exactly this'],
    others: { 409: 'Used, expired, or another operation' },
    answer: ({ caller, params, body }) => plane.approvals.use(caller, params.id, body.digest),
  })
}
