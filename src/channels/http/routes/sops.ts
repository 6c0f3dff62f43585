/** Lists procedures and their runs, begins a run, and cancels one. A run has the operator's rights, so that takes the scope admin. */

import { z } from '@hono/zod-openapi'
import { addJsonRoute, count, inScope } from '../../../http/api.ts'
import { HttpError } from '../../../http/http-error.ts'
import type { SopRunRow } from '../../../memory/journal/sop-store.ts'
import { findSops, problemLines, type SopFile, sopTools } from '../../../sop/find-sops.ts'
import { cancelRun, requeueRun, showRun } from '../../../sop/run-sop.ts'
import { queueSop } from '../../../sop/serve-sops.ts'
import { enabledSop, triggerState, triggerText } from '../../../sop/triggers.ts'
import { signatureOf } from '../access.ts'
import { type SopFacts, sopDetails, sopRun, sopRunDetails, sopShape } from '../answer-shapes.ts'
import { type Gateway, type GatewayApi, orMissing, refusedAs, snake } from '../gateway.ts'

const name = z
  .string()
  .regex(/^[a-z][a-z0-9-]{0,63}$/, 'this is not the name of a procedure')
  .openapi({ example: 'daily-check' })
const id = z
  .string()
  .regex(/^sop_[0-9a-z]{1,64}$/, 'this is not the id of a run of a procedure')
  .openapi({ example: 'sop_4q2fqk8fd4spk980' })
const begin = z.strictObject({ inputs: z.record(z.string(), z.string().max(100_000)).optional() })

export function sopRoutes(app: GatewayApi, gateway: Gateway): void {
  const { host, setup } = gateway
  const stateOf = async (file: SopFile) => triggerState({ setup, sops: (await host.records()).sops }, file)
  addJsonRoute(app, inScope('read'), 'get /sops', {
    summary: 'The procedures of the home and the workspace',
    gives: [z.object({ sops: z.array(sopShape) }), 'In the order of their names'],
    async answer() {
      const sops = await findSops(setup, await sopTools(setup))
      return { sops: await Promise.all(sops.map(async (file) => factsOf(file, await stateOf(file)))) }
    },
  })
  // A path that is written out comes before one with a name.
  runRoutes(app, gateway)
  addJsonRoute(app, inScope('read'), 'get /sops/{name}', {
    summary: 'One procedure with its inputs and steps',
    params: z.object({ name }),
    gives: [sopDetails, 'The file that counts'],
    async answer({ params }) {
      const file = (await findSops(setup, await sopTools(setup))).find((each) => each.name === params.name)
      if (file === undefined) throw new HttpError(404, 'not_found', `the procedure ${params.name} does not exist`)
      const { inputs, steps } = file.sop
      return { ...factsOf(file, await stateOf(file)), path: file.path, inputs, plan: [...steps] }
    },
  })
  addJsonRoute(app, inScope('chat'), 'post /sops/{name}/webhook', {
    summary: 'Begin a procedure that a person enabled, by its webhook: the token has the name that the file gives, or the scope admin',
    params: z.object({ name }),
    body: [z.looseObject({}), 'Anything; the input of the trigger gets it as JSON'],
    gives: [sopRun, 'It begins within a second; with an Idempotency-Key once'],
    status: 202,
    async answer({ caller, params, body }) {
      const [file, { webhook, input }] = await enabledSop(host, params.name, (trigger) => trigger.webhook !== undefined)
      if (caller.name !== webhook && !caller.scopes.includes('admin'))
        throw new HttpError(403, 'forbidden', `only the token ${webhook} may begin ${params.name}`)
      const inputs = input === undefined ? {} : { [input]: JSON.stringify(body) }
      return runOut(await queueSop(host, file, { inputs, by: `webhook ${signatureOf(caller)}` }))
    },
  })
  addJsonRoute(app, inScope('admin'), 'post /sops/{name}/runs', {
    summary: 'Begin a run; also as a webhook: with an Idempotency-Key, a call that is sent again begins no second run',
    params: z.object({ name }),
    body: [begin, 'The inputs of the procedure'],
    gives: [sopRun, 'It begins within a second'],
    status: 202,
    answer: async ({ caller, params, body: { inputs = {} } }) =>
      runOut(await queueSop(host, params.name, { inputs, by: signatureOf(caller) })),
  })
}

function runRoutes(app: GatewayApi, { host }: Gateway): void {
  const ofRun = { params: z.object({ id }), gives: [sopRun, 'The run'], others: { 409: 'It has ended already' } } as const
  addJsonRoute(app, inScope('read'), 'get /sops/runs', {
    summary: 'Runs of procedures, newest first',
    query: z.object({ limit: count(500), name: name.optional() }),
    gives: [z.object({ runs: z.array(sopRun) }), 'The runs'],
    answer: async ({ query: { limit = 50, name: of } }) => ({
      runs: (await host.records()).sops.runs.list({ limit, name: of }).map(runOut),
    }),
  })
  addJsonRoute(app, inScope('read'), 'get /sops/runs/{id}', {
    summary: 'One run with its steps',
    params: z.object({ id }),
    gives: [sopRunDetails, 'Steps in the order of their ends; a question is answered at POST /approvals'],
    async answer({ params }) {
      const records = await host.records()
      const { steps, ...row } = await orMissing(() => showRun(records, params.id))
      return { ...runOut(row), steps: steps.map(snake) }
    },
  })
  addJsonRoute(app, inScope('admin'), 'post /sops/runs/{id}/cancel', {
    summary: 'Cancel a run, and close its questions',
    ...ofRun,
    answer: async ({ params }) => changed(params.id, cancelRun),
  })
  addJsonRoute(app, inScope('admin'), 'post /sops/runs/{id}/resume', {
    summary: 'Continue a run that waits, or that was stopped',
    ...ofRun,
    answer: async ({ params }) => changed(params.id, requeueRun),
  })

  async function changed(ref: string, change: typeof cancelRun) {
    const records = await host.records()
    await orMissing(() => showRun(records, ref))
    return runOut(await refusedAs(['usage', 409, 'ended'], () => change(records, ref)))
  }
}

function factsOf(file: SopFile, state: ReturnType<typeof triggerState>): SopFacts {
  const { description, steps, triggers } = file.sop
  const { name: of, where } = file
  const words = triggers.map(triggerText)
  return { name: of, description, where, steps: steps.length, problems: [...problemLines(file)], triggers: words, trigger_state: state }
}

function runOut(row: SopRunRow) {
  return { ...snake(row), inputs: row.inputs }
}
