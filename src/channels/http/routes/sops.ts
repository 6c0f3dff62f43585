/** Lists procedures and their runs, begins a run, and cancels one. A run has the operator's rights, so that takes the scope admin. */

import { z } from '@hono/zod-openapi'
import { FailureError } from '../../../host/failure.ts'
import { addJsonRoute, count, inScope } from '../../../http/api.ts'
import { HttpError } from '../../../http/http-error.ts'
import type { SopRunRow } from '../../../memory/journal/sop-store.ts'
import { findSops, problemLines, sopTools } from '../../../sop/find-sops.ts'
import { cancelRun, showRun } from '../../../sop/run-sop.ts'
import { queueSop } from '../../../sop/serve-sops.ts'
import { signatureOf } from '../access.ts'
import { type Gateway, type GatewayApi, orMissing, snake } from '../gateway.ts'

const name = z
  .string()
  .regex(/^[a-z][a-z0-9-]{0,63}$/, 'this is not the name of a procedure')
  .openapi({ example: 'daily-check' })
const id = z
  .string()
  .regex(/^sop_[0-9a-z]{1,64}$/, 'this is not the id of a run of a procedure')
  .openapi({ example: 'sop_4q2fqk8fd4spk980' })
const states = z.enum(['running', 'waiting', 'asked', 'done', 'failed', 'cancelled'])
const procedure = z.object({
  name,
  description: z.string(),
  where: z.enum(['home', 'workspace']),
  steps: z.int(),
  problems: z.array(z.string()),
})
const run = z.looseObject({ id, name, state: states, why: z.string(), started_by: z.string(), started: z.int(), ended: z.int().nullable() })
const step = z.looseObject({ step: z.string(), state: z.string(), output: z.string(), why: z.string(), question: z.string().nullable() })
const begin = z.strictObject({ inputs: z.record(z.string(), z.string().max(100_000)).optional() })

export function sopRoutes(app: GatewayApi, { host, setup }: Gateway): void {
  addJsonRoute(app, inScope('read'), 'get /sops', {
    summary: 'The procedures of the home and the workspace',
    gives: [z.object({ sops: z.array(procedure) }), 'In the order of their names'],
    async answer() {
      const sops = await findSops(setup, await sopTools(setup))
      return { sops: sops.map((file) => ({ ...file, ...pick(file.sop), problems: [...problemLines(file)] })) }
    },
  })
  addJsonRoute(app, inScope('read'), 'get /sops/runs', {
    summary: 'Runs of procedures, newest first',
    query: z.object({ limit: count(500), name: name.optional() }),
    gives: [z.object({ runs: z.array(run) }), 'The runs'],
    answer: async ({ query: { limit = 50, name: of } }) => ({
      runs: (await host.records()).sops.runs.list({ limit, name: of }).map(runOut),
    }),
  })
  addJsonRoute(app, inScope('read'), 'get /sops/runs/{id}', {
    summary: 'One run with its steps',
    params: z.object({ id }),
    gives: [
      z.looseObject({ ...run.shape, steps: z.array(step) }),
      'Steps in the order of their ends; a question is answered at POST /approvals',
    ],
    async answer({ params }) {
      const records = await host.records()
      const { steps, ...row } = orMissing(() => showRun(records, params.id))
      return { ...runOut(row), steps: steps.map(snake) }
    },
  })
  addJsonRoute(app, inScope('admin'), 'post /sops/{name}/runs', {
    summary: 'Begin a run; also as a webhook: with an Idempotency-Key, a call that is sent again begins no second run',
    params: z.object({ name }),
    body: [begin, 'The inputs of the procedure'],
    gives: [run, 'It begins within a second'],
    status: 202,
    answer: async ({ caller, params, body: { inputs = {} } }) =>
      runOut(await queueSop(host, params.name, { inputs, by: signatureOf(caller) })),
  })
  addJsonRoute(app, inScope('admin'), 'post /sops/runs/{id}/cancel', {
    summary: 'Cancel a run, and close its questions',
    params: z.object({ id }),
    gives: [run, 'The run'],
    others: { 409: 'It has ended already' },
    async answer({ params }) {
      const records = await host.records()
      orMissing(() => showRun(records, params.id))
      try {
        return runOut(cancelRun(records, params.id))
      } catch (error) {
        throw error instanceof FailureError && error.code === 'usage' ? new HttpError(409, 'ended', error.message) : error
      }
    },
  })
}

function pick({ description, steps }: { readonly description: string; readonly steps: readonly unknown[] }) {
  return { description, steps: steps.length }
}

function runOut(row: SopRunRow) {
  return { ...snake(row), inputs: row.inputs }
}
