/** Lists, reads, renames and deletes conversations, and stops their commands in the background. */

import { z } from '@hono/zod-openapi'
import { addJsonRoute, count, inScope, plain } from '../../../http/api.ts'
import { HttpError } from '../../../http/http-error.ts'
import { ownerOf, signatureOf } from '../access.ts'
import { conversationId, type Gateway, type GatewayApi, orMissing } from '../gateway.ts'

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

export function conversationRoutes(app: GatewayApi, { host, openConversations }: Gateway): void {
  addJsonRoute(app, inScope('read'), 'get /conversations', {
    summary: 'Conversations, most recently used first',
    query: z.object({ limit: count(500), before: z.optional(z.coerce.number().pipe(z.int().min(0))) }),
    gives: [page, '"next" is the "before" of the next page'],
    async answer({ caller, query: { limit = 50, before } }) {
      const { conversations } = await host.records()
      const found = conversations.list({ limit, ownedBy: ownerOf(caller), before })
      return { ...found, conversations: found.conversations.map(({ conversationId, ...rest }) => ({ id: conversationId, ...rest })) }
    },
  })
  addJsonRoute(app, inScope('read'), 'get /conversations/{id}', {
    summary: 'One conversation with all its turns, oldest first',
    params,
    gives: [whole, 'The conversation'],
    async answer({ caller, params: { id } }) {
      openConversations.assertSees(caller, id)
      const { conversations } = await host.records()
      const seq = host.events.latest()
      const { conversationId: _, messages, ...rest } = await orMissing(() => conversations.read(id))
      const running = openConversations.runningIn(id)
      return { id, ...rest, seq, messages: plain(messages), running_run_id: running }
    },
  })
  addJsonRoute(app, inScope('chat'), 'patch /conversations/{id}', {
    summary: 'Rename a conversation',
    params,
    body: [z.strictObject({ title: z.string().min(1).max(200) }), 'The title'],
    gives: [line, 'The conversation'],
    async answer({ caller, params: { id }, body }) {
      openConversations.assertSees(caller, id)
      const { conversations } = await host.records()
      const { conversationId: _, ...rest } = await orMissing(() => conversations.rename(id, body.title))
      return { id, ...rest }
    },
  })
  addJsonRoute(app, inScope('chat'), 'delete /conversations/{id}', {
    summary: 'Delete a conversation with its turns, runs and journal; its receipts stay',
    params,
    gives: [deleted, 'What was deleted'],
    async answer({ caller, params: { id } }) {
      openConversations.assertSees(caller, id)
      const { conversations } = await host.records()
      const { turns, runs } = conversations.delete(id, signatureOf(caller))
      return { id, turns, runs }
    },
  })
}

const job = z.object({
  id: z.string(),
  command: z.string(),
  started: z.int(),
  state: z.enum(['running', 'ended']),
  end: z.optional(z.string()),
  bytes: z.int().openapi({ description: 'What it printed so far' }),
})
const jobId = z.string().regex(/^job-\d{1,9}$/, 'ids of commands in the background look like job-1')

/** Lists the commands in the background of a conversation, and stops them. */
export function jobRoutes(app: GatewayApi, { host, openConversations }: Gateway): void {
  addJsonRoute(app, inScope('read'), 'get /conversations/{id}/jobs', {
    summary: 'Commands in the background of a conversation, oldest first',
    params,
    gives: [z.object({ jobs: z.array(job) }), 'Those of this process'],
    async answer({ caller, params: { id } }) {
      openConversations.assertSees(caller, id)
      return { jobs: host.jobs(id)?.list() ?? [] }
    },
  })
  addJsonRoute(app, inScope('chat'), 'post /conversations/{id}/jobs/{job}/stop', {
    summary: 'Stop a command in the background',
    params: z.object({ id: conversationId, job: jobId }),
    gives: [z.object({ id: z.string(), stopped: z.literal(true) }), 'It has ended'],
    async answer({ caller, params: { id, job } }) {
      openConversations.assertSees(caller, id)
      if (!(await host.jobs(id)?.end(job, signatureOf(caller)))) throw new HttpError(404, 'no_job', `no ${job} runs here`)
      return { id: job, stopped: true } as const
    },
  })
}
