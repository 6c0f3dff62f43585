/** Answers POST /chat: one turn, the whole answer at once. */

import { z } from '@hono/zod-openapi'
import { route } from '../../../http/api.ts'
import type { Gateway, GatewayApi } from '../gateway.ts'
import { conversationId, ending, json, messageText } from '../shapes.ts'
import { createTurnNotes } from '../turn-notes.ts'

const request = z.strictObject({ message: messageText, conversation_id: z.optional(conversationId), stream: z.boolean().optional() })
const usage = z.object({
  input_tokens: z.int(),
  output_tokens: z.int(),
  cost_micros: z.int().optional(),
  estimated: z.boolean().optional(),
})
const answer = z.object({
  conversation_id: z.string(),
  run_id: z.string().nullable(),
  text: z.string(),
  ending,
  tool_calls: z.array(z.object({ id: z.string(), name: z.string(), input: z.unknown(), status: z.string() })),
  receipts: z.array(z.string()),
  approvals: z.array(z.string()),
  usage: z.nullable(usage),
})

export function chatRoutes(app: GatewayApi, { talks, host }: Gateway): void {
  app.openapi(
    route('chat', {
      method: 'post',
      path: '/chat',
      summary: 'Say something and wait for the answer',
      request: { body: json(request, 'What to say, and where') },
      responses: {
        200: json(answer, 'The turn has ended, also when something was denied: see ending.code'),
        202: json(answer, 'A call needs a yes; approvals names the questions'),
      },
    }),
    async (c) => {
      const { message, conversation_id } = c.req.valid('json')
      const notes = createTurnNotes()
      const { conversation, ending } = await talks.turn({
        caller: c.var.caller,
        ...(conversation_id === undefined ? {} : { conversationId: conversation_id }),
        message,
        show: notes.show,
        onApproval: 'end',
        signal: new AbortController().signal,
      })
      return c.json(notes.told({ conversation, ending, host }), ending.code === 'approval_needed' ? 202 : 200)
    },
  )
}
