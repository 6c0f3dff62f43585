/** Lists the questions that wait for a person, and takes the answers. */

import { z } from '@hono/zod-openapi'
import type { ApprovalDecision } from '../../../host/contract/records-api.ts'
import { count, json } from '../../../http/answers/shapes.ts'
import { route } from '../../../http/api.ts'
import { HttpError } from '../../../http/http-error.ts'
import { type Caller, ownerOf, signatureOf } from '../access/token-access.ts'
import type { Gateway, GatewayApi } from '../gateway.ts'
import { orMissingLater } from '../missing.ts'
import { snake } from '../snake.ts'

const approval = z.looseObject({
  id: z.string(),
  run_id: z.string(),
  conversation_id: z.string(),
  tool: z.string(),
  risk: z.string(),
  reason: z.string(),
  summary: z.string(),
  plan: z.string(),
  created: z.int(),
  expires: z.int(),
  state: z.enum(['open', 'allowed', 'denied', 'used', 'altered']),
  about: z.enum(['call', 'changes']),
  patch: z.optional(z.string().openapi({ description: 'What a yes would do to files, as a unified diff' })),
})
const decision = z.strictObject({
  decision: z.enum(['allow', 'deny']),
  note: z.optional(z.string().max(2_000)),
  files: z.array(z.string()).min(1).max(10_000).optional().openapi({ description: 'Only these paths are applied, the others are dropped' }),
  always: z.boolean().optional().openapi({ description: 'Also allow what is like it from now on' }),
})
/** A question about a call is named RUN/CALL, one about its changes changes:RUN/CALL. */
const params = z.object({
  run: z.string().regex(/^(?:changes:)?[a-z]+_[0-9a-z]{1,64}$/, 'this is no id of a question'),
  call: z.string().regex(/^[\w.:#-]{1,128}$/, 'this is no id of a question'),
})

export function approvalRoutes(app: GatewayApi, { host, talks }: Gateway): void {
  async function shown(caller: Caller, id: string) {
    const { approvals } = await host.records()
    const found = await orMissingLater(approvals.show(id))
    if (!talks.sees(caller, found.conversationId)) throw new HttpError(404, 'not_found', `there is no question ${id}`)
    return found
  }

  app.openapi(
    route('read', {
      method: 'get',
      path: '/approvals',
      summary: 'Questions that wait for an answer, newest first',
      request: {
        query: z.object({
          limit: count(500),
          all: z.enum(['true', 'false']).optional().openapi({ description: 'Also those that are answered, used or expired' }),
        }),
      },
      responses: { 200: json(z.object({ approvals: z.array(approval) }), 'The questions') },
    }),
    async (c) => {
      const { limit = 100, all } = c.req.valid('query')
      const found = (await host.records()).approvals.list({ limit, all: all === 'true', ownedBy: ownerOf(c.var.caller) })
      return c.json({ approvals: found.map(toApproval) }, 200)
    },
  )
  app.openapi(
    route('read', {
      method: 'get',
      path: '/approvals/{run}/{call}',
      summary: 'One question, with the exact changes that it is about',
      request: { params },
      responses: { 200: json(approval, 'The question') },
    }),
    async (c) => {
      const { run, call } = c.req.valid('param')
      return c.json(toApproval(await shown(c.var.caller, `${run}/${call}`)), 200)
    },
  )
  app.openapi(
    route('approve', {
      method: 'post',
      path: '/approvals/{run}/{call}',
      summary: 'Say yes or no to exactly this plan or change set, once',
      request: { params, body: json(decision, 'The answer') },
      responses: { 200: json(approval, 'It counts'), 409: { description: 'The question is no longer open' } },
    }),
    async (c) => {
      const { run, call } = c.req.valid('param')
      const { id } = await shown(c.var.caller, `${run}/${call}`)
      const { decision, ...more } = c.req.valid('json')
      const { approvals } = await host.records()
      const made: ApprovalDecision = { allow: decision === 'allow', by: signatureOf(c.var.caller), ...given(more) }
      const done = await approvals.decide(id, made).catch((error: unknown) => {
        throw error instanceof Error && 'code' in error && error.code === 'error' ? new HttpError(409, 'not_open', error.message) : error
      })
      return c.json(toApproval(done), 200)
    },
  )
}

type Given = Pick<z.infer<typeof decision>, 'note' | 'files' | 'always'>

function given({ note, files, always }: Given): Omit<ApprovalDecision, 'allow' | 'by'> {
  return { ...(note === undefined ? {} : { note }), ...(files === undefined ? {} : { files }), ...(always === undefined ? {} : { always }) }
}

type Shown = Awaited<ReturnType<Awaited<ReturnType<Gateway['host']['records']>>['approvals']['show']>>

function toApproval({ changes, ...approval }: Shown) {
  return { ...snake(approval), about: changes === 1 ? ('changes' as const) : ('call' as const) }
}
