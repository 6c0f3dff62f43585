/** Lists, reads, renames and deletes conversations. */

import { z } from '@hono/zod-openapi'
import { count, json, plain } from '../../../http/answers/shapes.ts'
import { route } from '../../../http/api.ts'
import { ownerOf, signatureOf } from '../access/token-access.ts'
import type { Gateway, GatewayApi } from '../gateway.ts'
import { orMissing } from '../missing.ts'
import { conversationId } from '../shapes.ts'

const facts = { started: z.int(), updated: z.int(), turns: z.int(), title: z.string() }
const line = z.object({ id: z.string(), ...facts })
const page = z.object({ conversations: z.array(line), next: z.optional(z.int()) })
const turn = z.looseObject({ turn_id: z.string(), timestamp: z.string(), role: z.string(), content: z.string() })
const whole = z.object({
  id: z.string(),
  ...facts,
  running_run_id: z.optional(z.string()),
  seq: z.int().openapi({ description: 'All that happened up to this number of GET /events is in it' }),
  messages: z.array(turn),
})
const deleted = z.object({ id: z.string(), turns: z.int(), runs: z.int() })

const params = z.object({ id: conversationId })

export function conversationRoutes(app: GatewayApi, { host, talks }: Gateway): void {
  app.openapi(
    route('read', {
      method: 'get',
      path: '/conversations',
      summary: 'Conversations, most recently used first',
      request: { query: z.object({ limit: count(500), before: z.optional(z.coerce.number().pipe(z.int().min(0))) }) },
      responses: { 200: json(page, '"next" is the "before" of the next page') },
    }),
    async (c) => {
      const { limit = 50, before } = c.req.valid('query')
      const { conversations } = await host.records()
      const found = conversations.list({ limit, ownedBy: ownerOf(c.var.caller), ...(before === undefined ? {} : { before }) })
      return c.json(
        { ...found, conversations: found.conversations.map(({ conversationId, ...rest }) => ({ id: conversationId, ...rest })) },
        200,
      )
    },
  )
  app.openapi(
    route('read', {
      method: 'get',
      path: '/conversations/{id}',
      summary: 'One conversation with all its turns, oldest first',
      request: { params },
      responses: { 200: json(whole, 'The conversation') },
    }),
    async (c) => {
      const { id } = c.req.valid('param')
      talks.assertSees(c.var.caller, id)
      const { conversations } = await host.records()
      const seq = host.events.latest()
      const { conversationId: _, messages, ...rest } = orMissing(() => conversations.read(id))
      const running = talks.runningIn(id)
      return c.json({ id, ...rest, seq, messages: plain(messages), ...(running ? { running_run_id: running } : {}) }, 200)
    },
  )
  app.openapi(
    route('chat', {
      method: 'patch',
      path: '/conversations/{id}',
      summary: 'Rename a conversation',
      request: { params, body: json(z.strictObject({ title: z.string().min(1).max(200) }), 'The title') },
      responses: { 200: json(line, 'The conversation') },
    }),
    async (c) => {
      const { id } = c.req.valid('param')
      talks.assertSees(c.var.caller, id)
      const { conversations } = await host.records()
      const { conversationId: _, ...rest } = orMissing(() => conversations.rename(id, c.req.valid('json').title))
      return c.json({ id, ...rest }, 200)
    },
  )
  app.openapi(
    route('chat', {
      method: 'delete',
      path: '/conversations/{id}',
      summary: 'Delete a conversation with its turns, runs and journal; its receipts stay',
      request: { params },
      responses: { 200: json(deleted, 'What was deleted') },
    }),
    async (c) => {
      const { id } = c.req.valid('param')
      talks.assertSees(c.var.caller, id)
      const { conversations } = await host.records()
      const { turns, runs } = conversations.delete(id, signatureOf(c.var.caller))
      return c.json({ id, turns, runs }, 200)
    },
  )
}
