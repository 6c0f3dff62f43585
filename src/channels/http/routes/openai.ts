/** Answers clients of OpenAI's API: GET /v1/models and POST /v1/chat/completions. Each request is one turn with the history that it brings. */

import { z } from '@hono/zod-openapi'
import { route } from '../../../http/api.ts'
import { errorResponse, HttpError } from '../../../http/http-error.ts'
import { createId } from '../../../kit/id.ts'
import type { Gateway, GatewayApi } from '../gateway.ts'
import { createPieces, failureOf, finishOf, noteOf, openAiFields, usageOf } from '../openai/answers.ts'
import { askedOf, completionRequest } from '../openai/messages.ts'
import { eventStream, json } from '../shapes.ts'
import { leavingSignal, streamTurn } from '../turns/stream-turn.ts'

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
      const id = known(request.model)
      const { prompt, past } = askedOf(request)
      const { connection } = c.env
      const { on_disconnect = 'cancel', stream } = request
      const turn = { caller: c.var.caller, message: prompt, past, onApproval: 'end' } as const
      const pieces = createPieces()
      const named = {
        id: createId('chatcmpl', crypto.getRandomValues(new Uint8Array(15))),
        created: Math.floor(Date.now() / 1000),
        model: id,
      }
      if (stream) {
        const chunk = (delta: object, finish: string | null = null) => ({
          ...named,
          object: 'chat.completion.chunk',
          choices: [{ index: 0, delta, finish_reason: finish, logprobs: null }],
        })
        const role = { role: 'assistant' }
        const first = { role: role as object }
        return streamTurn(talks, {
          ...turn,
          connection,
          onDisconnect: on_disconnect,
          show(event, stream) {
            const content = pieces(event)
            if (content === '') return
            stream.send({ data: chunk({ ...first.role, content }) })
            first.role = {}
          },
          ended(done, stream) {
            const failure = failureOf(done.ending)
            if (failure)
              stream.send({
                data: { error: { code: failure.code, message: failure.message, ...openAiFields(failure), ...failure.fields } },
              })
            else {
              const note = noteOf(done)
              stream.send({ data: chunk({ ...first.role, ...(note === '' ? {} : { content: note }) }) })
              stream.send({ data: chunk({}, finishOf(done.ending)) })
              if (request.stream_options?.include_usage)
                stream.send({ data: { ...named, object: 'chat.completion.chunk', choices: [], usage: usageOf(done) } })
            }
            stream.send({ data: '[DONE]' })
          },
        })
      }
      const said = { text: '' }
      connection.stay()
      const done = await talks.turn({
        ...turn,
        show: (event) => {
          said.text += pieces(event)
        },
        signal: leavingSignal(connection, on_disconnect).signal,
      })
      const failure = failureOf(done.ending)
      if (failure) return errorResponse(failure, openAiFields(failure))
      const message = { role: 'assistant', content: `${said.text}${noteOf(done)}`.trim(), refusal: null }
      return c.json(
        {
          ...named,
          object: 'chat.completion',
          choices: [{ index: 0, message, finish_reason: finishOf(done.ending), logprobs: null }],
          usage: usageOf(done),
        } as const,
        200,
      )
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
