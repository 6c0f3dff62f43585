/** Answers POST /chat: one turn, the whole answer at once. */

import { z } from '@hono/zod-openapi'
import type { Conversation, Host } from '../../../host/api.ts'
import { claimMark } from '../../../host/contract/claim-mark.ts'
import { eventStream, json, route } from '../../../http/api.ts'
import type { AgentEvent, Ending } from '../../../runtime/event.ts'
import { ending, type Gateway, type GatewayApi, messageText, picturesOf, snake, toTurn, turnMembers } from '../gateway.ts'
import { plainEvents, streamTurn } from '../open-conversations.ts'

const request = z.strictObject({
  message: messageText,
  ...turnMembers,
  stream: z.boolean().optional().openapi({ description: 'Answer as POST /run does; default: what the header Accept wants' }),
})
const usage = z.object({
  input_tokens: z.int(),
  output_tokens: z.int(),
  cached_input_tokens: z.int().optional(),
  cache_write_tokens: z.int().optional(),
  cost_micros: z.int().optional(),
  estimated: z.literal(true).optional(),
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
  context: z
    .object({ window: z.int(), used: z.int(), trimmed: z.int() })
    .optional()
    .openapi({ description: "The model's window, the last request, in tokens, and how often the turn was trimmed" }),
  proof: z.array(claimMark).optional().openapi({ description: 'What the answer claims, and what the turn proves of it' }),
})

export function chatRoutes(app: GatewayApi, { openConversations, host }: Gateway): void {
  app.openapi(
    route('chat', {
      method: 'post',
      path: '/chat',
      summary: 'Say something and wait for the answer',
      request: { body: json(request, 'What to say, and where') },
      responses: {
        200: {
          description:
            'The turn has ended, also when something was denied: see ending.code. With "stream" or Accept: text/event-stream, the events as in POST /run',
          content: { 'application/json': { schema: answer }, ...eventStream },
        },
        202: json(answer, 'A call needs a yes; approvals names the questions'),
      },
    }),
    async (c) => {
      const {
        message,
        images,
        conversation_id,
        stream = wantsEvents(c.req.header('accept')),
        on_disconnect = 'continue',
        on_approval = stream ? 'wait' : 'end',
      } = c.req.valid('json')
      const turn = {
        ...toTurn(c, message, { conversationId: conversation_id, pictures: await picturesOf(images) }),
        onApproval: on_approval,
        onDisconnect: on_disconnect,
      }
      if (stream) return streamTurn(openConversations, { ...turn, ...plainEvents })
      const notes = createTurnNotes()
      const { conversation, ending } = await openConversations.turn({ ...turn, show: notes.show })
      const summary = await notes.summary({ conversation, ending, host })
      // The model may continue after a question, so the turn can end with another code while the question is open.
      return c.json(summary, ending.code === 'approval_needed' || summary.approvals.length > 0 ? 202 : 200)
    },
  )
}

/** Tells whether the client wants events; one that takes JSON too gets the whole answer. */
function wantsEvents(accept = ''): boolean {
  return /\btext\/event-stream\b/i.test(accept) && !/\bapplication\/json\b/i.test(accept)
}

type FinishedTurn = { readonly conversation: Conversation; readonly ending: Ending; readonly host: Pick<Host, 'records'> }

/** Collects what a turn does while it runs, for one answer that reports all of it. */
function createTurnNotes() {
  const calls = new Map<string, { readonly id: string; readonly name: string; readonly input: unknown; status: string }>()
  const seen = { text: '' }
  return {
    show(event: AgentEvent): void {
      if (event.type === 'tool_use')
        calls.set(event.toolCallId, { id: event.toolCallId, name: event.toolName, input: event.input, status: 'not finished' })
      const call = event.type === 'tool_result' ? calls.get(event.toolCallId) : undefined
      if (call && event.type === 'tool_result') call.status = event.status
      if (event.type === 'done' && event.result !== undefined) seen.text = event.result
    },
    async summary({ conversation, ending: { code, message }, host }: FinishedTurn) {
      const runId = conversation.runId()
      const used = conversation.usage()
      const proof = await conversation.proof(seen.text)
      const { window, used: tokens = 0, trimmed = 0 } = conversation.context() ?? {}
      return {
        conversation_id: conversation.id,
        run_id: runId ?? null,
        text: seen.text,
        ending: { code, message },
        tool_calls: [...calls.values()],
        receipts: calls.size > 0 && runId !== undefined ? [...(await host.records()).receipts.ofRun(runId)] : [],
        approvals: [...conversation.unanswered()],
        usage: used ? snake(used) : null,
        context: window === undefined ? undefined : { window, used: tokens, trimmed },
        proof: proof.length === 0 ? undefined : [...proof],
      }
    },
  }
}
