/** Serves tasks: their creation and changes, the claims, beats and releases of workers, what an operator decides, and their effects on the world. */

import { z } from '@hono/zod-openapi'
import { json, plain } from '../../../http/answers/shapes.ts'
import { requestDigest } from '../../../http/api.ts'
import { HttpError } from '../../../http/http-error.ts'
import { keyOf } from '../../../http/idempotency.ts'
import type { Connection } from '../../../http/listen.ts'
import type { QuickAsked, QuickRoutes } from '../../../http/quick-routes.ts'
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
import { controlRoute, guardOf, prefix } from '../access/control-route.ts'
import type { ControlApi, ControlServer } from '../control-server.ts'
import { assertFullView, effectAt, isSeedQuery, note, nothing, taskAt, taskListQuery } from '../request-shapes.ts'
import { seedTasks } from '../seed-answers.ts'

const page = z.object({ tasks: z.array(task), next: z.nullable(z.string()), counts: z.record(z.string(), z.int()) })
const batch = z.strictObject({ tasks: z.array(taskDraft).min(1).max(1_000) })
const ifMatch = z.object({ 'if-match': z.optional(z.string().max(64)) })

export function taskRoutes(app: ControlApi, { plane }: ControlServer, quick: QuickRoutes<Caller>): void {
  const query = taskListQuery()
  app.openapi(
    controlRoute({
      method: 'get',
      path: `${prefix}/tasks`,
      summary: 'Tasks: with ?role= alone the queue of that role, else a page of all that match',
      request: { query },
      responses: {
        200: json(
          z.union([seedTasks, page]),
          'The tasks; "next" is the "after" of the next page, also behind a page of a search (q) that found nothing',
        ),
      },
    }),
    async (c) => {
      const { view: _, ...asked } = c.req.valid('query')
      if (isSeedQuery(c.req.query(), Object.keys(query.shape), 'role'))
        return c.json(plain(await plane.seed.tasks(c.var.caller, asked.role)), 200)
      assertFullView(c.var.caller)
      return c.json(plain(await plane.tasks.list(c.var.caller, asked)), 200)
    },
  )
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
      return { status: 201, body: task, ...(replayed ? { headers: { 'idempotency-replayed': 'true' } } : {}) }
    },
  })
  app.openapi(
    controlRoute({
      method: 'post',
      path: `${prefix}/tasks/batch`,
      summary: 'Create up to 1,000 tasks: all or none',
      request: { body: json(batch, 'The tasks') },
      responses: { 201: json(z.object({ tasks: z.array(task) }), 'In the order of the request') },
    }),
    async (c) => c.json({ tasks: plain(await plane.tasks.createMany(c.var.caller, c.req.valid('json').tasks)) }, 201),
  )
  app.openapi(
    controlRoute({
      method: 'get',
      path: `${prefix}/tasks/{id}`,
      summary: 'One task',
      request: { params: taskAt },
      responses: { 200: json(task, 'The task; its version is the entity tag') },
    }),
    async (c) => {
      const found = await plane.tasks.get(c.var.caller, c.req.valid('param').id)
      c.header('etag', `"${found.version}"`)
      return c.json(plain(found), 200)
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

/** @throws HttpError 400 for what is neither a version nor "*" */
function versionOf(ifMatch: string | undefined): number | undefined {
  if (ifMatch === undefined || ifMatch === '*') return undefined
  const [, digits] = /^(?:"(\d{1,15})"|(\d{1,15}))$/.exec(ifMatch)?.filter((part) => part !== undefined) ?? []
  if (digits !== undefined) return Number(digits)
  throw new HttpError(400, 'bad_request', `If-Match: ${JSON.stringify(ifMatch)} is no version of a task; send the number of its "version"`)
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
  app.openapi(
    controlRoute({
      method: 'post',
      path: `${prefix}/tasks/{id}/beat`,
      summary: 'Keep the lease, and learn whether the task is cancelled',
      request: { params: taskAt, body: json(nothing, 'Nothing') },
      responses: { 200: json(beat, 'Until when'), 409: { description: 'lease_lost: stop, nothing more counts' } },
    }),
    async (c) => c.json(plain(await plane.tasks.beat(c.var.caller, c.req.valid('param').id)), 200),
  )
  app.openapi(
    controlRoute({
      method: 'post',
      path: `${prefix}/tasks/{id}/release`,
      summary: 'Give the task back',
      request: { params: taskAt, body: json(releaseRequest, 'How it ended') },
      responses: { 200: json(task, 'The task now'), 409: { description: 'lease_lost' } },
    }),
    async (c) => c.json(plain(await plane.tasks.release(c.var.caller, c.req.valid('param').id, c.req.valid('json'))), 200),
  )
}

type Asked = { readonly request: Parameters<ControlServer['plane']['tasks']['claim']>[1]; readonly connection: Connection }

/** A task that was claimed when the client had left already goes back at once. */
async function claimFor(server: ControlServer, caller: Caller, asked: Asked): Promise<Claim | undefined> {
  const { request, connection } = asked
  const { tasks } = server.plane
  const claimed = await (request.wait_ms === 0 ? tasks.claim(caller, request, connection.gone) : waitFor(server, caller, asked))
  if (!claimed || !connection.gone.aborted) return claimed
  await tasks.release(holderOf(claimed, request.agent_id), claimed.task.task_id, { outcome: 'now' })
  return undefined
}

/** A client that leaves ends the wait. */
async function waitFor(
  { plane, stopping, counters }: ControlServer,
  caller: Caller,
  { request, connection }: Asked,
): Promise<Claim | undefined> {
  const ended = counters.began('poll', caller)
  connection.stay()
  try {
    return await plane.tasks.claim(caller, request, AbortSignal.any([connection.gone, stopping]))
  } finally {
    ended()
  }
}

function holderOf({ task, run_id, attempt }: Claim, agentId: string): Caller {
  return { kind: 'run', id: agentId, role: task.role, taskId: task.task_id, runId: run_id, attempt }
}

export function decisionRoutes(app: ControlApi, { plane }: ControlServer): void {
  app.openapi(
    controlRoute({
      method: 'post',
      path: `${prefix}/tasks/{id}/cancel`,
      summary: 'Cancel a task; a running one is told with its next beat',
      request: { params: taskAt, body: json(note, 'Why') },
      responses: { 200: json(task, 'The task now'), 409: { description: 'It has ended' } },
    }),
    async (c) => c.json(plain(await plane.tasks.cancel(c.var.caller, c.req.valid('param').id, c.req.valid('json').note)), 200),
  )
  app.openapi(
    controlRoute({
      method: 'post',
      path: `${prefix}/tasks/{id}/retry`,
      summary: 'Put a task that has failed, died or waits back into the queue',
      request: { params: taskAt, body: json(note, 'Why') },
      responses: { 200: json(task, 'The task now'), 409: { description: 'Its state does not allow it' } },
    }),
    async (c) => c.json(plain(await plane.tasks.retry(c.var.caller, c.req.valid('param').id, c.req.valid('json').note)), 200),
  )
  app.openapi(
    controlRoute({
      method: 'post',
      path: `${prefix}/tasks/{id}/resolve`,
      summary: 'Say what became of an effect in doubt: done, redo or give_up',
      request: { params: taskAt, body: json(resolveRequest, 'The decision') },
      responses: { 200: json(task, 'The task now'), 409: { description: 'Nothing of it is in doubt' } },
    }),
    async (c) => c.json(plain(await plane.tasks.resolve(c.var.caller, c.req.valid('param').id, c.req.valid('json'))), 200),
  )
}

const doneResult = z.strictObject({ result: z.optional(effectResult) })
const doneWithKey = z.strictObject({ key: effectKey, result: z.optional(effectResult) })

export function effectRoutes(app: ControlApi, { plane }: ControlServer): void {
  app.openapi(
    controlRoute({
      method: 'get',
      path: `${prefix}/tasks/{id}/effects`,
      summary: 'The effects of a task',
      request: { params: taskAt },
      responses: { 200: json(z.object({ effects: z.array(effect) }), 'The effects, oldest first') },
    }),
    async (c) => c.json({ effects: plain(await plane.tasks.effects(c.var.caller, c.req.valid('param').id)) }, 200),
  )
  app.openapi(
    controlRoute({
      method: 'post',
      path: `${prefix}/tasks/{id}/effects`,
      summary: 'Announce an effect before it happens',
      request: { params: taskAt, body: json(effectRequest, 'The effect; its key is unique in the task') },
      responses: { 200: json(effectReply, 'new: do it; done: here is its result; in_doubt: stop') },
    }),
    async (c) => c.json(plain(await plane.tasks.beginEffect(c.var.caller, c.req.valid('param').id, c.req.valid('json'))), 200),
  )
  app.openapi(
    controlRoute({
      method: 'post',
      path: `${prefix}/tasks/{id}/effects/{key}/done`,
      summary: 'Say that an effect happened',
      request: { params: effectAt, body: json(doneResult, 'Its result') },
      responses: { 200: json(effectReply, 'It is kept') },
    }),
    async (c) => {
      const { id, key } = c.req.valid('param')
      return c.json(plain(await plane.tasks.endEffect(c.var.caller, id, key, c.req.valid('json').result)), 200)
    },
  )
  app.openapi(
    controlRoute({
      method: 'post',
      path: `${prefix}/tasks/{id}/effects/done`,
      summary: 'Say that an effect happened, for keys that do not fit into a path',
      request: { params: taskAt, body: json(doneWithKey, 'Its key and its result') },
      responses: { 200: json(effectReply, 'It is kept') },
    }),
    async (c) => {
      const { key, result } = c.req.valid('json')
      return c.json(plain(await plane.tasks.endEffect(c.var.caller, c.req.valid('param').id, key, result)), 200)
    },
  )
}
