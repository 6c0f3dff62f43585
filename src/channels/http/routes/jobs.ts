/** Lists the commands in the background of a conversation, and stops them. */

import { z } from '@hono/zod-openapi'
import { json } from '../../../http/answers/shapes.ts'
import { route } from '../../../http/api.ts'
import { HttpError } from '../../../http/http-error.ts'
import { signatureOf } from '../access/token-access.ts'
import type { Gateway, GatewayApi } from '../gateway.ts'
import { conversationId } from '../shapes.ts'

const job = z.object({
  id: z.string(),
  command: z.string(),
  started: z.int(),
  state: z.enum(['running', 'ended']),
  end: z.optional(z.string()),
  bytes: z.int().openapi({ description: 'What it printed so far' }),
})
const jobId = z.string().regex(/^job-\d{1,9}$/, 'ids of commands in the background look like job-1')

export function jobRoutes(app: GatewayApi, { host, talks }: Gateway): void {
  app.openapi(
    route('read', {
      method: 'get',
      path: '/conversations/{id}/jobs',
      summary: 'Commands in the background of a conversation, oldest first',
      request: { params: z.object({ id: conversationId }) },
      responses: { 200: json(z.object({ jobs: z.array(job) }), 'Those of this process') },
    }),
    (c) => {
      const { id } = c.req.valid('param')
      talks.assertSees(c.var.caller, id)
      return c.json({ jobs: host.jobs(id)?.list() ?? [] }, 200)
    },
  )
  app.openapi(
    route('chat', {
      method: 'post',
      path: '/conversations/{id}/jobs/{job}/stop',
      summary: 'Stop a command in the background',
      request: { params: z.object({ id: conversationId, job: jobId }) },
      responses: { 200: json(z.object({ id: z.string(), stopped: z.literal(true) }), 'It has ended') },
    }),
    async (c) => {
      const { id, job } = c.req.valid('param')
      talks.assertSees(c.var.caller, id)
      if (!(await host.jobs(id)?.end(job, signatureOf(c.var.caller)))) throw new HttpError(404, 'no_job', `no ${job} runs here`)
      return c.json({ id: job, stopped: true } as const, 200)
    },
  )
}
