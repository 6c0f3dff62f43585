/** Answers GET /events: everything that happens in this home, as server-sent events that can be resumed without a gap. */

import { z } from '@hono/zod-openapi'
import type { HostEvent } from '../../../host/events/host-event.ts'
import { eventStream, route } from '../../../http/api.ts'
import { credentialEnd } from '../../../http/callers.ts'
import { openEventStream } from '../../../http/event-stream.ts'
import { errorText } from '../../../kit/errors.ts'
import type { Caller } from '../access.ts'
import { conversationId, type Gateway, type GatewayApi, runId } from '../gateway.ts'

const position = z.string().regex(/^\d{1,15}(?:\.\d{1,9})?$/, 'this is not the id of an event')
const query = z.object({ after: z.optional(position), conversation_id: z.optional(conversationId), run_id: z.optional(runId) })

export function eventRoutes(app: GatewayApi, { host, openConversations, setup }: Gateway): void {
  app.openapi(
    route('read', {
      method: 'get',
      path: '/events',
      summary: 'What happens in this home, as server-sent events',
      request: { query, headers: z.object({ 'last-event-id': z.optional(position) }) },
      responses: {
        200: {
          description: 'One HostEvent in each data line. Resume with Last-Event-ID, or with ?after=; 0 is the beginning',
          content: eventStream,
        },
      },
    }),
    (c) => {
      const { after, conversation_id, run_id } = c.req.valid('query')
      const { caller } = c.var
      if (conversation_id !== undefined) openConversations.assertSees(caller, conversation_id)
      const from = c.req.valid('header')['last-event-id'] ?? after
      const filter = { after: from, conversationId: conversation_id, runId: run_id, sees: (event: HostEvent) => isFor(caller, event) }
      const stream = openEventStream({ connection: c.env.connection, opening: true })
      const over = new AbortController()
      stream.disconnected.addEventListener('abort', () => over.abort(), { once: true })
      openConversations.stopping.addEventListener('abort', () => over.abort(), { once: true })
      void credentialEnd(c.env.isInForce, over.signal).then((hasEnded) => {
        if (hasEnded) stream.send({ data: unauthorized() })
        over.abort()
      })
      const pass = async () => {
        for await (const event of host.events.subscribe(filter, over.signal))
          if (!over.signal.aborted) stream.send({ id: event.id, data: event })
      }
      void pass()
        .catch((error: unknown) => setup.log('warn', 'events ended', { why: errorText(error) }))
        .finally(() => {
          over.abort()
          stream.end()
        })
      return stream.response
    },
  )

  /** Tells whether the caller may get the event: a token with a memory of its own gets only the stop of other conversations. */
  function isFor(caller: Caller, { conversationId, event }: HostEvent): boolean {
    if (caller.access.memory === 'all') return true
    return conversationId === undefined
      ? event.type === 'estop' || event.type === 'subscription_ended'
      : openConversations.sees(caller, conversationId)
  }
}

function unauthorized(): HostEvent {
  const message = 'this token, or this session, is not in force any more'
  return { at: Date.now(), event: { type: 'subscription_ended', reason: 'unauthorized', message } }
}
