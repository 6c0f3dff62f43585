/** Lists the questions that wait for a person, and takes the answers. */

import { z } from '@hono/zod-openapi'
import type { ApprovalDecision } from '../../../host/contract/records-api.ts'
import { addJsonRoute, count, inScope } from '../../../http/api.ts'
import { HttpError } from '../../../http/http-error.ts'
import { type Caller, ownerOf, signatureOf } from '../access.ts'
import { type Gateway, type GatewayApi, orMissing, refusedAs, snake } from '../gateway.ts'

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
  run: z.string().regex(/^(?:changes:)?[a-z]+_[0-9a-z]{1,64}$/, 'this is not the id of a question'),
  call: z.string().regex(/^[\w.:#-]{1,128}$/, 'this is not the id of a question'),
})

export function approvalRoutes(app: GatewayApi, { host, openConversations }: Gateway): void {
  async function visibleApproval(caller: Caller, id: string) {
    const { approvals } = await host.records()
    const found = await orMissing(() => approvals.show(id))
    // A question of a procedure belongs to no conversation: who sees all conversations sees it.
    const isVisible = found.tool.startsWith('sop.') ? ownerOf(caller) === undefined : openConversations.sees(caller, found.conversationId)
    if (!isVisible) throw new HttpError(404, 'not_found', `the question ${id} does not exist`)
    return found
  }

  addJsonRoute(app, inScope('read'), 'get /approvals', {
    summary: 'Questions that wait for an answer, newest first',
    query: z.object({
      limit: count(500),
      all: z.enum(['true', 'false']).optional().openapi({ description: 'Also those that are answered, used or expired' }),
    }),
    gives: [z.object({ approvals: z.array(approval) }), 'The questions'],
    async answer({ caller, query: { limit = 100, all } }) {
      const found = (await host.records()).approvals.list({ limit, all: all === 'true', ownedBy: ownerOf(caller) })
      return { approvals: found.map(toApproval) }
    },
  })
  addJsonRoute(app, inScope('read'), 'get /approvals/{run}/{call}', {
    summary: 'One question, with the exact changes that it is about',
    params,
    gives: [approval, 'The question'],
    async answer({ caller, params: { run, call } }) {
      return toApproval(await visibleApproval(caller, `${run}/${call}`))
    },
  })
  addJsonRoute(app, inScope('approve'), 'post /approvals/{run}/{call}', {
    summary: 'Say yes or no to exactly this plan or change set, once',
    params,
    body: [decision, 'The answer'],
    gives: [approval, 'It counts'],
    others: { 409: 'The question is closed already' },
    async answer({ caller, params: { run, call }, body }) {
      const { id } = await visibleApproval(caller, `${run}/${call}`)
      const { decision, ...more } = body
      const { approvals } = await host.records()
      const made: ApprovalDecision = { allow: decision === 'allow', by: signatureOf(caller), ...more }
      return toApproval(await refusedAs(['error', 409, 'not_open'], () => approvals.decide(id, made)))
    },
  })
}

type ApprovalView = Awaited<ReturnType<Awaited<ReturnType<Gateway['host']['records']>>['approvals']['show']>>

function toApproval({ changes, ...approval }: ApprovalView) {
  return { ...snake(approval), about: changes === 1 ? ('changes' as const) : ('call' as const) }
}
