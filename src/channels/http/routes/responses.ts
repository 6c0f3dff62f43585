/** Answers POST /v1/responses, the newer form of OpenAI's API: one turn with the input that the request brings. */

import { z } from '@hono/zod-openapi'
import { eventStream, json, route } from '../../../http/api.ts'
import type { EventStream } from '../../../http/event-stream.ts'
import type { HttpError } from '../../../http/http-error.ts'
import { type Gateway, type GatewayApi, toTurn } from '../gateway.ts'
import { type StreamedTurn, streamTurn, type TurnDone } from '../open-conversations.ts'
import {
  assertNone,
  assertPlainText,
  content,
  createPieces,
  failureOf,
  finishOf,
  historyOf,
  knownModel,
  newId,
  noTools,
  noteOf,
  type Said,
  saidIn,
  textOf,
  unsupported,
  wholeAnswer,
} from './openai.ts'

const item = z.looseObject({
  type: z.optional(z.string()),
  role: z.optional(z.string()),
  content: z.optional(content),
  call_id: z.nullish(z.string()),
  name: z.nullish(z.string()),
  arguments: z.nullish(z.string()),
  input: z.optional(z.unknown()),
  output: z.optional(content),
})
const responseRequest = z.looseObject({
  model: z.string(),
  input: z.union([z.string(), z.array(item).max(10_000)]),
  instructions: z.nullish(z.string()),
  metadata: z.nullish(z.record(z.string(), z.string())),
  stream: z.nullish(z.boolean()),
  on_disconnect: z.optional(z.enum(['continue', 'cancel'])),
})
type ResponseRequest = z.infer<typeof responseRequest>

const response = z.looseObject({ id: z.string(), object: z.literal('response'), status: z.string(), model: z.string() })

export function responseRoutes(app: GatewayApi, { openConversations, setup }: Gateway): void {
  app.openapi(
    route('chat', {
      method: 'post',
      path: '/v1/responses',
      summary: 'One turn in the words of OpenAI’s newer API',
      request: { body: json(responseRequest, 'As OpenAI describes it; a client’s own tools and stored responses are refused') },
      responses: {
        200: { description: 'The answer, or its events', content: { 'application/json': { schema: response }, ...eventStream } },
      },
    }),
    async (c) => {
      const request = c.req.valid('json')
      const head = headOf(request, knownModel(setup, request.model))
      const { prompt, pictures, past } = await turnInputOf(request)
      const turn = { ...toTurn(c, prompt, { pictures }), past, onApproval: 'end', onDisconnect: request.on_disconnect ?? 'cancel' } as const
      if (request.stream) return streamTurn(openConversations, { ...turn, ...responseEvents(head) })
      const { text, done, failure } = await wholeAnswer(openConversations, turn)
      return failure ?? c.json(endOf(head, text, done), 200)
    },
  )
}

const notStored = 'responses are not stored; send the whole history as input'
/** Lists parameters that ask for something that does not exist here; the request is refused when one is present and not empty. */
const refused: { readonly [name: string]: string } = {
  tools: noTools,
  previous_response_id: notStored,
  conversation: notStored,
  prompt: 'templates of prompts do not exist here',
}

/** @throws HttpError 400 that names the parameter */
function turnInputOf(request: ResponseRequest) {
  assertNone(request, refused)
  if (request.background === true) throw unsupported('background', `background: ${notStored}; leave it out`)
  assertPlainText('text.format', (request.text as { readonly format?: unknown } | null | undefined)?.format)
  const { input, instructions } = request
  const items = typeof input === 'string' ? [{ role: 'user', content: input }] : input
  const system = instructions ? [{ role: 'system', text: instructions }] : []
  return historyOf([...system, ...items.flatMap(saidInItem)], 'input')
}

/** @throws HttpError 400 that names the item */
function saidInItem(asked: z.infer<typeof item>, at: number): Said | readonly Said[] {
  const { type = 'message', role = '', content, call_id, name, output } = asked
  if (type === 'message') return saidIn({ role, content }, 'input', at)
  // The reasoning of other models is theirs: no model here reads it.
  if (type === 'reasoning') return []
  const isResult = type === 'function_call_output' || type === 'custom_tool_call_output'
  if (!isResult && type !== 'function_call' && type !== 'custom_tool_call')
    throw unsupported(
      'input',
      `input.${at}: an item of the type ${JSON.stringify(type)} cannot be read here; send messages and function calls`,
    )
  if (!call_id) throw unsupported('input', `input.${at}: a call and its result need the id of the call; send it as call_id`)
  if (isResult) return { role: 'tool', text: textOf(output, 'input', at), callId: call_id }
  return {
    role: 'assistant',
    text: '',
    calls: [{ id: call_id, name: name ?? 'unnamed', input: asked.arguments ?? String(asked.input ?? '') }],
  }
}

type ResponseHead = ReturnType<typeof headOf>

/** Returns what every state of the response repeats. */
function headOf({ instructions, metadata }: ResponseRequest, model: string) {
  return {
    id: newId('resp'),
    object: 'response' as const,
    created_at: Math.floor(Date.now() / 1000),
    model,
    instructions: instructions ?? null,
    metadata: metadata ?? {},
    ...{ background: false, max_output_tokens: null, parallel_tool_calls: false, previous_response_id: null, store: false },
    ...{ temperature: null, text: { format: { type: 'text' } }, tool_choice: 'auto', tools: [], top_p: null, truncation: 'disabled' },
  }
}

type ItemStatus = 'in_progress' | 'completed' | 'incomplete'

function messageOf(id: string, text: string, status: ItemStatus) {
  return { id, type: 'message', role: 'assistant', status, content: status === 'in_progress' ? [] : [outputText(text)] }
}

function outputText(text: string) {
  return { type: 'output_text', text, annotations: [], logprobs: [] }
}

/** Returns the response as it is when the turn has ended. */
function endOf(head: ResponseHead, text: string, done: TurnDone, itemId = newId('msg')) {
  const failure = failureOf(done.ending)
  const finish = finishOf(done)
  const status = failure ? 'failed' : finish === 'stop' ? 'completed' : 'incomplete'
  const { inputTokens = 0, outputTokens = 0, cachedInputTokens = 0 } = done.conversation.usage() ?? {}
  return {
    ...head,
    status,
    error: failure ? { code: failure.status === 429 ? 'rate_limit_exceeded' : 'server_error', message: failure.message } : null,
    incomplete_details: status === 'incomplete' ? { reason: finish === 'length' ? 'max_output_tokens' : finish } : null,
    output: failure && text === '' ? [] : [messageOf(itemId, text, status === 'completed' ? status : 'incomplete')],
    usage: {
      input_tokens: inputTokens,
      input_tokens_details: { cached_tokens: cachedInputTokens },
      output_tokens: outputTokens,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: inputTokens + outputTokens,
    },
  }
}

/** Streams a turn as the numbered events of OpenAI's API: the response with one message, which has one part. */
function responseEvents(head: ResponseHead): Pick<StreamedTurn, 'show' | 'ended' | 'failed'> {
  const pieces = createPieces()
  const at = { item_id: newId('msg'), output_index: 0, content_index: 0 }
  const state = { number: 0, text: '', hasItem: false }

  function put(stream: EventStream, type: string, fields: object): void {
    stream.send({ event: type, data: { type, sequence_number: state.number++, ...fields } })
  }

  function begin(stream: EventStream): void {
    if (state.number > 0) return
    const begun = { ...head, status: 'in_progress', error: null, incomplete_details: null, output: [], usage: null }
    for (const type of ['response.created', 'response.in_progress']) put(stream, type, { response: begun })
  }

  function beginItem(stream: EventStream): void {
    if (state.hasItem) return
    state.hasItem = true
    put(stream, 'response.output_item.added', { output_index: 0, item: messageOf(at.item_id, '', 'in_progress') })
    put(stream, 'response.content_part.added', { ...at, part: outputText('') })
  }

  function say(piece: string, stream: EventStream): void {
    if (piece === '') return
    beginItem(stream)
    state.text += piece
    put(stream, 'response.output_text.delta', { ...at, delta: piece, logprobs: [] })
  }

  return {
    show(event, stream) {
      begin(stream)
      say(pieces(event), stream)
    },
    ended(done, stream) {
      begin(stream)
      say(noteOf(done), stream)
      if (!failureOf(done.ending)) beginItem(stream)
      const { text } = state
      const end = endOf(head, text, done, at.item_id)
      if (state.hasItem) {
        put(stream, 'response.output_text.done', { ...at, text, logprobs: [] })
        put(stream, 'response.content_part.done', { ...at, part: outputText(text) })
        put(stream, 'response.output_item.done', { output_index: 0, item: end.output[0] })
      }
      put(stream, `response.${end.status}`, { response: end })
    },
    failed({ code, message }: HttpError, stream) {
      put(stream, 'error', { code, message, param: null })
    },
  }
}
