/** Answers POST /run with the events of one turn as they happen, and POST /runs/{id}/cancel. */

import { z } from '@hono/zod-openapi'
import { eventStream, json } from '../../../http/answers/shapes.ts'
import { route } from '../../../http/api.ts'
import { HttpError } from '../../../http/http-error.ts'
import { signatureOf } from '../access/token-access.ts'
import type { Gateway, GatewayApi } from '../gateway.ts'
import { conversationId, messageText, onApproval, onDisconnect, runId, toTurn } from '../shapes.ts'
import { streamTurn } from '../turns/stream-turn.ts'

const request = z.strictObject({
  prompt: messageText,
  conversation_id: z.optional(conversationId),
  on_disconnect: z.optional(onDisconnect),
  on_approval: z.optional(onApproval),
})
const cancelled = z.object({ run_id: z.string(), cancelled: z.literal(true) })

export function runRoutes(app: GatewayApi, { talks, host }: Gateway): void {
  app.openapi(
    route('chat', {
      method: 'post',
      path: '/run',
      summary: 'Say something and read what happens, as server-sent events',
      request: { body: json(request, 'What to say, and where') },
      responses: {
        200: {
          description: 'One AgentEvent in each data line, the last one is "done". X-Conversation-Id names the conversation',
          content: eventStream,
        },
      },
    }),
    async (c) => {
      const { prompt, conversation_id, on_disconnect = 'continue', on_approval = 'wait' } = c.req.valid('json')
      return streamTurn(talks, {
        ...toTurn(c.var.caller, prompt, conversation_id),
        connection: c.env.connection,
        onDisconnect: on_disconnect,
        onApproval: on_approval,
        show: (event, stream) => stream.send({ data: event }),
      })
    },
  )
  app.openapi(
    route('chat', {
      method: 'post',
      path: '/runs/{id}/cancel',
      summary: 'End a run that is under way',
      request: { params: z.object({ id: runId }) },
      responses: { 200: json(cancelled, 'It is ending') },
    }),
    (c) => {
      const { id } = c.req.valid('param')
      if (!talks.seesRun(c.var.caller, id) || !host.cancelRun(id, signatureOf(c.var.caller)))
        throw new HttpError(404, 'no_run', `no run ${id} is under way here`)
      return c.json({ run_id: id, cancelled: true } as const, 200)
    },
  )
}
