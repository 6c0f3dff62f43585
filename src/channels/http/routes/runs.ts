/** Begins, cancels, lists and shows runs with everything that their calls did, and takes their changes back. */

import { z } from '@hono/zod-openapi'
import type { RunFacts, TranscriptStep, Undone } from '../../../host/contract/records-api.ts'
import { addJsonRoute, count, eventStream, inScope, json, plain, route } from '../../../http/api.ts'
import { HttpError } from '../../../http/http-error.ts'
import { type Caller, ownerOf, signatureOf } from '../access.ts'
import { runFacts } from '../answer-shapes.ts'
import {
  conversationId,
  type Gateway,
  type GatewayApi,
  messageText,
  orMissing,
  picturesOf,
  runId,
  snake,
  toTurn,
  turnMembers,
} from '../gateway.ts'
import { plainEvents, streamTurn } from '../open-conversations.ts'

const page = z.object({ runs: z.array(runFacts), next: z.optional(z.string()) })
const step = z.looseObject({ type: z.enum(['message', 'reply', 'call', 'error']), seq: z.int(), at: z.int() })
const transcript = z.looseObject({ ...runFacts.shape, steps: z.array(step) })
const undone = z.looseObject({ ok: z.boolean(), name: z.string() })
const force = z.strictObject({ force: z.boolean().optional().openapi({ description: 'Overwrite what others changed since' }) })

const params = z.object({ id: runId })
const setParams = z.object({ run: runId, call: z.string().regex(/^[\w.:-]{1,128}$/, 'this is not the id of a call') })

export function runsRoutes(app: GatewayApi, { host, openConversations: open }: Gateway): void {
  /** @throws HttpError 404 for a run that does not exist or that the caller may not see */
  async function visibleRun(caller: Caller, id: string) {
    const { runs } = await host.records()
    const run = await orMissing(() => runs.show(id))
    if (run.runId !== id || !open.sees(caller, run.conversationId)) throw new HttpError(404, 'not_found', `the run ${id} does not exist`)
    return run
  }

  addJsonRoute(app, inScope('read'), 'get /runs', {
    summary: 'Runs, newest first',
    query: z.object({ limit: count(500), before: z.optional(runId), conversation_id: z.optional(conversationId) }),
    gives: [page, '"next" is the "before" of the next page'],
    async answer({ caller, query: { limit = 20, before, conversation_id } }) {
      if (conversation_id !== undefined) open.assertSees(caller, conversation_id)
      const found = (await host.records()).runs.list({ limit, ownedBy: ownerOf(caller), before, conversationId: conversation_id })
      return { runs: found.runs.map(toRun), next: found.next }
    },
  })
  addJsonRoute(app, inScope('read'), 'get /runs/{id}', {
    summary: 'One run: its messages, each call with its judgement, outcome, receipt and changes',
    params,
    gives: [transcript, 'The transcript'],
    async answer({ caller, params }) {
      const { steps, usage, ...rest } = await visibleRun(caller, params.id)
      return { ...toRun(rest), usage: usage && snake(usage), steps: steps.map(toStep) }
    },
  })
  app.openapi(
    route('approve', {
      method: 'post',
      path: '/runs/{id}/undo',
      summary: 'Take back all that a run changed, newest first',
      request: { params, body: json(force, 'How') },
      responses: {
        200: json(z.object({ undone: z.array(undone) }), 'All of it is taken back'),
        409: json(z.object({ undone: z.array(undone) }), 'Others changed something since'),
      },
    }),
    async (c) => {
      const { runId } = await visibleRun(c.var.caller, c.req.valid('param').id)
      const done = await (await host.records()).changes.undoRun(runId, c.req.valid('json'))
      return c.json({ undone: done.map(toUndone) }, done.every(({ ok }) => ok) ? 200 : 409)
    },
  )
  addJsonRoute(app, inScope('read'), 'get /changes/{run}/{call}', {
    summary: 'What one call changed, as a unified diff',
    params: setParams,
    gives: [z.looseObject({ name: z.string(), state: z.string(), patch: z.string() }), 'The change set'],
    async answer({ caller, params: { run, call } }) {
      await visibleRun(caller, run)
      return plain(snake(await orMissing(async () => (await host.records()).changes.show(`${run}/${call}`))))
    },
  })
  app.openapi(
    route('approve', {
      method: 'post',
      path: '/changes/{run}/{call}/undo',
      summary: 'Take back what one call changed',
      request: { params: setParams, body: json(force, 'How') },
      responses: { 200: json(undone, 'It is taken back'), 409: json(undone, 'Others changed something since') },
    }),
    async (c) => {
      const { run, call } = c.req.valid('param')
      await visibleRun(c.var.caller, run)
      const done = await orMissing(async () => (await host.records()).changes.undo(`${run}/${call}`, c.req.valid('json')))
      return c.json(toUndone(done), done.ok ? 200 : 409)
    },
  )
}

function toRun<F extends RunFacts>({ runId, ...facts }: F) {
  return { id: runId, ...snake<Omit<F, 'runId'>>(facts) } as ReturnType<typeof factsOf>
}

function factsOf({ runId, ...facts }: RunFacts) {
  return { id: runId, ...snake(facts) }
}

function toStep(step: TranscriptStep) {
  const { usage, ...rest } = step.type === 'reply' ? step : { ...step, usage: undefined }
  return plain({ ...snake(rest), usage: usage && snake(usage) })
}

function toUndone(done: Undone) {
  return done.ok ? { ...done } : { ...done, conflicts: done.conflicts.map((conflict) => ({ ...conflict })) }
}

const request = z.strictObject({ prompt: messageText, ...turnMembers })
const cancelled = z.object({ run_id: z.string(), cancelled: z.literal(true) })

/** Answers POST /run with the events of one turn as they happen, and POST /runs/{id}/cancel. */
export function runRoutes(app: GatewayApi, { openConversations, host }: Gateway): void {
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
      const { prompt, images, conversation_id, on_disconnect = 'continue', on_approval = 'wait' } = c.req.valid('json')
      return streamTurn(openConversations, {
        ...toTurn(c, prompt, { conversationId: conversation_id, pictures: await picturesOf(images) }),
        ...plainEvents,
        onDisconnect: on_disconnect,
        onApproval: on_approval,
      })
    },
  )
  addJsonRoute(app, inScope('chat'), 'post /runs/{id}/cancel', {
    summary: 'End a run that is under way',
    params: z.object({ id: runId }),
    gives: [cancelled, 'It is ending'],
    async answer({ caller, params: { id } }) {
      if (!openConversations.seesRun(caller, id) || !host.cancelRun(id, signatureOf(caller)))
        throw new HttpError(404, 'no_run', `no run ${id} is under way here`)
      return { run_id: id, cancelled: true } as const
    },
  })
}
