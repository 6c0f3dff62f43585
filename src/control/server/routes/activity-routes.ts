/** Takes the reports of agents, and serves events page by page or as a stream. */

import { z } from '@hono/zod-openapi'
import type { ApiEnv } from '../../../http/api.ts'
import { eventStream, json } from '../../../http/api.ts'
import { credentialEnd } from '../../../http/callers.ts'
import { type EventStream, openEventStream } from '../../../http/event-stream.ts'
import type { QuickRoutes } from '../../../http/quick-routes.ts'
import { errorText } from '../../../kit/errors.ts'
import { activityPost, activityReply, type ControlEvent, controlEvent } from '../../contract/activity-shapes.ts'
import type { Caller } from '../../contract/caller.ts'
import type { EventPlane } from '../../contract/plane.ts'
import type { ControlApi, ControlServer } from '../control-route.ts'
import { addRoute, controlRoute, guardOf, prefix } from '../control-route.ts'
import { createReportRate } from '../counters.ts'
import { eventListQuery, whole } from '../request-shapes.ts'

const page = z.object({ events: z.array(controlEvent), next: z.nullable(z.int()) })

export function activityRoutes(app: ControlApi, server: ControlServer, quick: QuickRoutes<Caller>): void {
  const { plane } = server
  const countReport = createReportRate(server.now)
  const { limit: _limit, before: _before, ...followed } = eventListQuery.shape
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
      // Each completion ends a task, so completions need no limit.
      if (post.event_type !== 'task_completed') countReport(caller)
      return { status: 200, body: await plane.activity(caller, post) }
    },
  })
  addRoute(app, 'get', '/activity', {
    summary: 'What happened, newest first unless "after" is given',
    query: eventListQuery,
    gives: [page, 'The events; "next" continues in the same direction'],
    answer: ({ caller, query }) => plane.events.list(caller, query),
  })
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

type StreamInput = {
  readonly caller: Caller
  readonly env: ApiEnv<Caller>['Bindings']
  readonly query: Parameters<EventPlane['follow']>[1]
}

/** Sends events to one client, as fast as it reads, while its credential is in force. */
function streamEvents({ plane, stopping, counters, log }: ControlServer, { caller, env, query }: StreamInput): Response {
  const ended = counters.began('stream', caller)
  const stream = openEventStream({ connection: env.connection, opening: true })
  const over = new AbortController()
  const end = () => over.abort()
  for (const signal of [stream.disconnected, stopping]) signal.addEventListener('abort', end, { once: true })
  if (stopping.aborted) end()
  void credentialEnd(env.isInForce, over.signal).then(end)
  void pass(plane.events.follow(caller, query, over.signal), stream)
    .catch((error: unknown) => log('warn', 'events ended', { why: errorText(error) }))
    .finally(() => {
      end()
      stopping.removeEventListener('abort', end)
      ended()
      stream.end()
    })
  return stream.response
}

async function pass(events: AsyncIterable<ControlEvent>, stream: EventStream): Promise<void> {
  for await (const event of events) {
    stream.send({ id: String(event.id), data: event })
    await stream.hasRoom()
  }
}
