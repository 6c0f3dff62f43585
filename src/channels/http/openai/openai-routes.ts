/** Answers clients of OpenAI's API: GET /v1/models and POST /v1/chat/completions. Each request is one turn with the history that it brings. */

import { z } from '@hono/zod-openapi'
import { eventStream, json } from '../../../http/answers/shapes.ts'
import { route } from '../../../http/api.ts'
import { errorResponse, HttpError } from '../../../http/http-error.ts'
import { createId } from '../../../kit/id.ts'
import type { AgentEvent } from '../../../runtime/event.ts'
import type { Gateway, GatewayApi } from '../gateway.ts'
import { leavingSignal, streamTurn } from '../turns/stream-turn.ts'
import { completionOf, createPieces, failureOf, openAiFields } from './answers.ts'
import { chunksOf } from './chunks.ts'
import { askedOf, completionRequest } from './messages.ts'

const model = z.object({ id: z.string(), object: z.literal('model'), created: z.int(), owned_by: z.string() })
const models = z.object({ object: z.literal('list'), data: z.array(model) })
const completion = z.looseObject({ id: z.string(), object: z.literal('chat.completion'), model: z.string() })

export function openAiRoutes(app: GatewayApi, { talks, setup }: Gateway): void {
  const { defaultProvider, defaultModel } = setup.config
  const names = ['braidclaw', `${defaultProvider}/${defaultModel}`]
  const modelOf = (id: string) => ({ id, object: 'model', created: 0, owned_by: 'braidclaw' }) as const

  app.openapi(
    route('chat', {
      method: 'get',
      path: '/v1/models',
      summary: 'The models of OpenAI’s API: the agent',
      responses: { 200: json(models, 'The agent') },
    }),
    (c) => c.json({ object: 'list', data: names.map(modelOf) } as const, 200),
  )
  app.openapi(
    route('chat', {
      method: 'get',
      path: '/v1/models/{id}',
      summary: 'One model of OpenAI’s API',
      request: { params: z.object({ id: z.string() }) },
      responses: { 200: json(model, 'The model') },
    }),
    (c) => c.json(modelOf(known(c.req.valid('param').id)), 200),
  )
  app.openapi(
    route('chat', {
      method: 'post',
      path: '/v1/chat/completions',
      summary: 'One turn in the words of OpenAI’s API',
      request: { body: json(completionRequest, 'As OpenAI describes it; a client’s own tools are refused') },
      responses: {
        200: { description: 'The answer, or its pieces', content: { 'application/json': { schema: completion }, ...eventStream } },
      },
    }),
    async (c) => {
      const request = c.req.valid('json')
      const named = { id: newId(), created: Math.floor(Date.now() / 1000), model: known(request.model) }
      const { prompt, past } = askedOf(request)
      const { connection } = c.env
      const onDisconnect = request.on_disconnect ?? 'cancel'
      const turn = { caller: c.var.caller, message: prompt, past, onApproval: 'end' } as const
      if (request.stream) {
        const chunks = chunksOf(named, request.stream_options?.include_usage ?? false)
        return streamTurn(talks, { ...turn, connection, onDisconnect, ...chunks })
      }
      connection.stay()
      const pieces = createPieces()
      const said = { text: '' }
      const show = (event: AgentEvent) => {
        said.text += pieces(event)
      }
      const done = await talks.turn({ ...turn, show, signal: leavingSignal(connection, onDisconnect).signal })
      const failure = failureOf(done.ending)
      return failure ? errorResponse(failure, openAiFields(failure)) : c.json(completionOf(named, said.text, done), 200)
    },
  )

  function known(id: string): string {
    if (names.includes(id)) return id
    throw new HttpError(
      404,
      'model_not_found',
      `there is no model ${JSON.stringify(id.slice(0, 100))} here; use ${names.join(' or ')}`,
      {},
      { param: 'model' },
    )
  }
}

function newId(): string {
  return createId('chatcmpl', crypto.getRandomValues(new Uint8Array(15)))
}
