/** Lists, adds, pauses and removes schedules. */

import { z } from '@hono/zod-openapi'
import { json, plain } from '../../../http/answers/shapes.ts'
import { schedule, scheduleDraft } from '../../contract/schedule-shapes.ts'
import { controlRoute, prefix } from '../access/control-route.ts'
import type { ControlApi, ControlServer } from '../control-server.ts'
import { madeAt, nothing, removed } from '../request-shapes.ts'

export function scheduleRoutes(app: ControlApi, { plane }: ControlServer): void {
  const { schedules } = plane
  app.openapi(
    controlRoute({
      method: 'get',
      path: `${prefix}/schedules`,
      summary: 'All schedules',
      responses: { 200: json(z.object({ schedules: z.array(schedule) }), 'The schedules') },
    }),
    async (c) => c.json({ schedules: plain(await schedules.list(c.var.caller)) }, 200),
  )
  app.openapi(
    controlRoute({
      method: 'post',
      path: `${prefix}/schedules`,
      summary: 'Add a schedule that makes a task by the clock',
      request: { body: json(scheduleDraft, 'When, and which task') },
      responses: { 201: json(schedule, 'The schedule'), 409: { description: 'There is one with this name' } },
    }),
    async (c) => c.json(plain(await schedules.add(c.var.caller, c.req.valid('json'))), 201),
  )
  for (const what of ['enable', 'disable'] as const)
    app.openapi(
      controlRoute({
        method: 'post',
        path: `${prefix}/schedules/{id}/${what}`,
        summary: what === 'enable' ? 'Let a schedule make tasks' : 'Let a schedule make no tasks',
        request: { params: madeAt, body: json(nothing, 'Nothing') },
        responses: { 200: json(schedule, 'The schedule now') },
      }),
      async (c) => c.json(plain(await schedules.setEnabled(c.var.caller, c.req.valid('param').id, what === 'enable')), 200),
    )
  app.openapi(
    controlRoute({
      method: 'delete',
      path: `${prefix}/schedules/{id}`,
      summary: 'Remove a schedule; its tasks stay',
      request: { params: madeAt },
      responses: { 200: json(removed, 'It is gone') },
    }),
    async (c) => {
      await schedules.remove(c.var.caller, c.req.valid('param').id)
      return c.json({ removed: true } as const, 200)
    },
  )
}
