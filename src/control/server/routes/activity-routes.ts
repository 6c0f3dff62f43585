/** Takes what agents report, and tells what happened: page by page, or as it happens. */

import { z } from '@hono/zod-openapi'
import { eventStream, json, plain } from '../../../http/answers/shapes.ts'
import type { QuickRoutes } from '../../../http/quick-routes.ts'
import { activityPost, activityReply, controlEvent } from '../../contract/activity-shapes.ts'
import type { Caller } from '../../contract/caller.ts'
import { controlRoute, guardOf, prefix } from '../access/control-route.ts'
import { createReportRate } from '../access/report-rate.ts'
import type { ControlApi, ControlServer } from '../control-server.ts'
import { streamEvents } from '../event-streams.ts'
import { eventListQuery, whole } from '../request-shapes.ts'

const page = z.object({ events: z.array(controlEvent), next: z.nullable(z.int()) })

export function activityRoutes(app: ControlApi, server: ControlServer, quick: QuickRoutes<Caller>): void {
  const { plane } = server
  const reports = createReportRate(server.now)
  const { limit: _limit, before: _before, ...followed } = eventListQuery().shape
  quick.add({
    config: {
      path: `${prefix}/activity`,
      summary: 'Report a completed task, ask for an approval, or report an error',
      responses: { 200: json(activityReply, 'It is recorded') },
    },
    guard: guardOf('POST /activity', 'kept'),
    body: activityPost,
    asks: 'What happened',
    answer: async (post, { caller }) => {
      // A completion needs a task, and each task has one.
      if (post.event_type !== 'task_completed') reports.take(caller)
      return { status: 200, body: await plane.activity(caller, post) }
    },
  })
  app.openapi(
    controlRoute({
      method: 'get',
      path: `${prefix}/activity`,
      summary: 'What happened, newest first unless "after" is given',
      request: { query: eventListQuery() },
      responses: { 200: json(page, 'The events; "next" continues in the same direction') },
    }),
    async (c) => c.json(plain(await plane.events.list(c.var.caller, c.req.valid('query'))), 200),
  )
  app.openapi(
    controlRoute({
      method: 'get',
      path: `${prefix}/events`,
      summary: 'What happens, as server-sent events',
      request: { query: z.object(followed), headers: z.object({ 'last-event-id': z.optional(whole(1e15)) }) },
      responses: {
        200: { description: 'One event in each data line. Resume with Last-Event-ID or ?after=; 0 is the beginning', content: eventStream },
      },
    }),
    (c) => {
      const query = c.req.valid('query')
      const after = c.req.valid('header')['last-event-id'] ?? query.after
      return streamEvents(server, { caller: c.var.caller, env: c.env, query: { ...query, after } })
    },
  )
}
