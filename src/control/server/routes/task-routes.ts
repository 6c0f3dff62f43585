/** Creates, lists, shows and edits tasks. */

import { z } from '@hono/zod-openapi'
import { json, plain } from '../../../http/answers/shapes.ts'
import { requestDigest } from '../../../http/api.ts'
import { HttpError } from '../../../http/http-error.ts'
import { keyOf } from '../../../http/idempotency.ts'
import type { QuickAsked, QuickRoutes } from '../../../http/quick-routes.ts'
import type { Caller } from '../../contract/caller.ts'
import { task, taskDraft, taskPatch } from '../../contract/task-shapes.ts'
import { controlRoute, guardOf, prefix } from '../access/control-route.ts'
import type { ControlApi, ControlServer } from '../control-server.ts'
import { assertFullView, isSeedQuery, taskAt, taskListQuery } from '../request-shapes.ts'
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
