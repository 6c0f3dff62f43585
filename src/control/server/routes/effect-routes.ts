/** Keeps the effects of a task on the world: an intent before each, and its result after it. */

import { z } from '@hono/zod-openapi'
import { json, plain } from '../../../http/answers/shapes.ts'
import { effect, effectKey, effectReply, effectRequest, effectResult } from '../../contract/task-shapes.ts'
import { controlRoute, prefix } from '../access/control-route.ts'
import type { ControlApi, ControlServer } from '../control-server.ts'
import { effectAt, taskAt } from '../request-shapes.ts'

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
