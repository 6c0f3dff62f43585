/** Answers clients of OpenAI's API: GET /v1/models and POST /v1/chat/completions. Each request is one turn with the history that it brings. */

import { z } from '@hono/zod-openapi'
import type { Conversation, Past } from '../../../host/api.ts'
import { addJsonRoute, eventStream, inScope, json, route } from '../../../http/api.ts'
import type { EventStream } from '../../../http/event-stream.ts'
import { errorResponse, HttpError } from '../../../http/http-error.ts'
import { isObject } from '../../../kit/json.ts'
import { createId } from '../../../kit/sha256.ts'
import { count } from '../../../kit/text.ts'
import type { AgentEvent, Ending } from '../../../runtime/event.ts'
import { endingNote } from '../../../runtime/history-text.ts'
import { picturesIn } from '../../../runtime/outcome.ts'
import type { Message, Picture } from '../../../runtime/port.ts'
import { type Gateway, type GatewayApi, picturesOf, toTurn } from '../gateway.ts'
import { openAiFields, type StreamedTurn, streamTurn, type TurnDone, type TurnRequest } from '../open-conversations.ts'

const model = z.object({ id: z.string(), object: z.literal('model'), created: z.int(), owned_by: z.string() })
const models = z.object({ object: z.literal('list'), data: z.array(model) })
const completion = z.looseObject({ id: z.string(), object: z.literal('chat.completion'), model: z.string() })

export function openAiRoutes(app: GatewayApi, { openConversations, setup }: Gateway): void {
  const modelOf = (id: string) => ({ id, object: 'model', created: 0, owned_by: 'braidclaw' }) as const

  addJsonRoute(app, inScope('chat'), 'get /v1/models', {
    summary: 'The models of OpenAI’s API: the agent',
    gives: [models, 'The agent'],
    answer: async () => ({ object: 'list', data: modelNames(setup).map(modelOf) }) as const,
  })
  addJsonRoute(app, inScope('chat'), 'get /v1/models/{id}', {
    summary: 'One model of OpenAI’s API',
    params: z.object({ id: z.string() }),
    gives: [model, 'The model'],
    answer: async ({ params }) => modelOf(knownModel(setup, params.id)),
  })
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
      const head = { id: newId('chatcmpl'), created: Math.floor(Date.now() / 1000), model: knownModel(setup, request.model) }
      const { prompt, pictures, past } = await turnInputOf(request)
      const turn = { ...toTurn(c, prompt, { pictures }), past, onApproval: 'end', onDisconnect: request.on_disconnect ?? 'cancel' } as const
      if (request.stream)
        return streamTurn(openConversations, { ...turn, ...chunksOf(head, request.stream_options?.include_usage ?? false) })
      const { text, done, failure } = await wholeAnswer(openConversations, turn)
      return failure ?? c.json(completionOf(head, text, done), 200)
    },
  )
}

function modelNames({ config: { defaultProvider, defaultModel } }: Gateway['setup']): readonly string[] {
  return ['braidclaw', `${defaultProvider}/${defaultModel}`]
}

/** @throws HttpError 404 */
export function knownModel(setup: Gateway['setup'], id: string): string {
  const names = modelNames(setup)
  if (names.includes(id)) return id
  const why = `unknown model ${JSON.stringify(id.slice(0, 100))}; use ${names.join(' or ')}`
  throw new HttpError(404, 'model_not_found', why, {}, { param: 'model' })
}

export function newId(prefix: 'chatcmpl' | 'resp' | 'msg'): string {
  return createId(prefix, crypto.getRandomValues(new Uint8Array(15)))
}

/** Runs a turn for a client that waits for the whole answer. `failure`: the response to a turn that gave no answer. */
export async function wholeAnswer(openConversations: Gateway['openConversations'], turn: Omit<TurnRequest, 'show'>) {
  const pieces = createPieces()
  const answer = { text: '' }
  const show = (event: AgentEvent) => {
    answer.text += pieces(event)
  }
  const done = await openConversations.turn({ ...turn, show })
  const failure = failureOf(done.ending)
  return { text: `${answer.text}${noteOf(done)}`.trim(), done, failure: failure && errorResponse(failure, openAiFields(failure)) }
}

/**
 * Streams a turn as the chunks of OpenAI's API. The first chunk names the role; the last ones say why the text ends, and what it used
 * when the client asked for that.
 */
function chunksOf(head: AnswerHead, wantsUsage: boolean): Pick<StreamedTurn, 'show' | 'ended' | 'failed'> {
  const pieces = createPieces()
  const state: { role?: string } = { role: 'assistant' }

  function put(stream: EventStream, delta: object, finish: string | null = null): void {
    const choices = [{ index: 0, delta: { ...state, ...delta }, finish_reason: finish, logprobs: null }]
    delete state.role
    stream.send({ data: { ...head, object: 'chat.completion.chunk', choices } })
  }

  function finish(done: TurnDone, stream: EventStream): void {
    const note = noteOf(done)
    if (note !== '') put(stream, { content: note })
    put(stream, {}, finishOf(done))
    if (wantsUsage) stream.send({ data: { ...head, object: 'chat.completion.chunk', choices: [], usage: usageOf(done) } })
  }

  function failed(why: HttpError, stream: EventStream): void {
    const { code, message, fields } = why
    stream.send({ data: { error: { code, message, ...openAiFields(why), ...fields } } })
    stream.send({ data: '[DONE]' })
  }

  return {
    failed,
    show(event, stream) {
      const content = pieces(event)
      if (content !== '') put(stream, { content })
    },
    ended(done, stream) {
      const failure = failureOf(done.ending)
      if (failure) return failed(failure, stream)
      finish(done, stream)
      stream.send({ data: '[DONE]' })
    },
  }
}

export const content = z.union([z.string(), z.array(z.looseObject({ type: z.string() })), z.null()])
const called = z.looseObject({ name: z.string(), arguments: z.string() })
const call = z.looseObject({
  id: z.string(),
  function: z.optional(called),
  custom: z.optional(z.looseObject({ name: z.string(), input: z.string() })),
})
const message = z.looseObject({
  role: z.string(),
  content: z.optional(content),
  name: z.nullish(z.string()),
  tool_calls: z.nullish(z.array(call)),
  tool_call_id: z.nullish(z.string()),
  function_call: z.nullish(called),
})

/**
 * Reads what a client of OpenAI's API says: its messages become the history of one turn, and what the agent cannot do is refused. Fields
 * that are not named here have no effect: the agent's own settings apply.
 */
const completionRequest = z.looseObject({
  model: z.string(),
  messages: z.array(message).min(1).max(10_000),
  stream: z.nullish(z.boolean()),
  stream_options: z.nullish(z.looseObject({ include_usage: z.nullish(z.boolean()) })),
  n: z.nullish(z.int()),
  on_disconnect: z.optional(z.enum(['continue', 'cancel'])),
})
type CompletionRequest = z.infer<typeof completionRequest>

type TurnInput = { readonly prompt: string; readonly pictures: readonly Picture[]; readonly past: Past }

export const noTools = 'the tools of the agent stay inside it and run here, behind its gate; a client cannot bring its own'
/** Lists parameters that ask for something that only the agent itself decides; the request is refused when one is present and not empty. */
const refused: { readonly [name: string]: string } = {
  tools: noTools,
  functions: noTools,
  audio: 'audio is not supported',
  web_search_options: 'the agent decides by itself what it looks up',
}

/** @throws HttpError 400 that names the parameter */
function turnInputOf(request: CompletionRequest): Promise<TurnInput> {
  assertNone(request, refused)
  if ((request.n ?? 1) !== 1) throw unsupported('n', 'n: one answer at a time; leave it out')
  assertPlainText('response_format', request.response_format)
  return historyOf(
    request.messages.map((message, at) => saidIn(message, 'messages', at)),
    'messages',
  )
}

/** @throws HttpError 400 that names the first parameter that is present, with the reason of the list */
export function assertNone(request: { readonly [name: string]: unknown }, reasons: { readonly [name: string]: string }): void {
  for (const [name, why] of Object.entries(reasons)) if (!isEmpty(request[name])) throw unsupported(name, `${name}: ${why}; leave it out`)
}

/** @throws HttpError 400 */
export function assertPlainText(param: string, format: unknown): void {
  if (!isEmpty(format) && !(typeof format === 'object' && format !== null && 'type' in format && format.type === 'text'))
    throw unsupported(param, `${param}: answers are plain text; leave it out`)
}

/** Names the part of a request that has the history. */
type List = 'messages' | 'input'

/** One message of a client, or a call of one of its own tools, or the result of such a call. `callId`: of the call that it is the result of. */
export type Said = {
  readonly role: string
  readonly text: string
  readonly images?: readonly string[]
  readonly calls?: readonly PastCall[]
  readonly callId?: string
}
type PastCall = { readonly id: string; readonly name: string; readonly input: string }

/** @throws HttpError 400 that names the message */
export function saidIn(message: CompletionRequest['messages'][number], list: List, at: number): Said {
  const { role, content, name, tool_calls, tool_call_id, function_call } = message
  const known = ['system', 'developer', 'user', 'assistant', 'tool', 'function']
  if (!known.includes(role))
    throw unsupported(list, `${list}.${at}: the role ${JSON.stringify(role)} is not known here; use ${known.slice(0, -1).join(', ')}`)
  const images = role === 'user' && Array.isArray(content) ? content.filter((part) => imageUrl(part) !== undefined) : []
  const text = textOf(images.length > 0 && Array.isArray(content) ? content.filter((part) => !images.includes(part)) : content, list, at)
  if (role === 'function' || role === 'tool') {
    const callId = role === 'tool' ? tool_call_id : name
    if (callId) return { role: 'tool', text, callId }
    throw unsupported(list, `${list}.${at}: a result needs the id of its call; send it as tool_call_id`)
  }
  const calls = (tool_calls ?? []).map(({ id, function: used, custom }) => ({
    id,
    name: used?.name ?? custom?.name ?? 'unnamed',
    input: used?.arguments ?? custom?.input ?? '',
  }))
  const older = function_call ? [{ id: function_call.name, name: function_call.name, input: function_call.arguments }] : []
  return { role, text, images: images.flatMap((part) => imageUrl(part) ?? []), calls: [...calls, ...older] }
}

/**
 * Splits what was said into the last message and what came before. The tools of the client do not exist here, so a past call of one is part of
 * the text of the assistant, and its result part of the next message of the user. @throws HttpError 400
 */
export async function historyOf(said: readonly Said[], list: List): Promise<TurnInput> {
  const last = said.at(-1)
  if (last?.callId === undefined && (last?.role !== 'user' || (last.text.trim() === '' && !last.images?.length)))
    throw unsupported(list, `${list}: the last one must be of the user and not empty, or the result of a call`)
  const names = new Map(said.flatMap(({ calls = [] }) => calls.map(({ id, name }) => [id, name] as const)))
  const spoken: { isUser: boolean; text: string; isResult: boolean; images: readonly string[] }[] = []
  for (const { role, text, images = [], calls = [], callId } of said) {
    const isResult = callId !== undefined
    const lines = calls.map(({ id, name, input }) => `[The client's own tool ${name} was called (${id}) with: ${input}]`)
    const result = isResult ? [`[The client's own tool ${names.get(callId) ?? '(unnamed)'} returned (${callId}):]`] : []
    const words = text.trim() === '' && images.length > 0 ? `[${count(images.length, 'picture')}]` : text
    const all = [...result, ...(words === '' ? [] : [words]), ...lines].join('\n')
    const before = spoken.at(-1)
    if (isSystem(role) || (role === 'assistant' && all === '')) continue
    const isUser = role !== 'assistant'
    const isOne = before?.isUser === isUser && (isUser ? before.isResult : calls.length > 0)
    if (before && isOne)
      Object.assign(before, { text: `${before.text}${isUser ? '\n\n' : '\n'}${all}`, isResult, images: [...before.images, ...images] })
    else spoken.push({ isUser, text: all, isResult, images })
  }
  const { text: prompt = '', images } = spoken.pop() ?? {}
  const pictures = await picturesOf(images, list)
  const history = await Promise.all(
    spoken.map(async ({ isUser, text, images }): Promise<Message> => {
      if (!isUser) return { role: 'assistant', parts: [{ type: 'text', text }] }
      return { role: 'user', content: text, ...picturesIn({ pictures: await picturesOf(images, list) }) }
    }),
  )
  const system = said.filter(({ role }) => isSystem(role)).map(({ text }) => text)
  return { prompt, pictures, past: { history, ...(system.length > 0 ? { soul: system.join('\n\n') } : {}) } }
}

function isSystem(role: string): boolean {
  return role === 'system' || role === 'developer'
}

export function textOf(content: z.infer<typeof message>['content'], list: List, at: number): string {
  if (typeof content === 'string') return content
  return (content ?? []).map((part) => partOf(part, list, at)).join('')
}

function imageUrl({ type, image_url: given }: { readonly type: string; readonly image_url?: unknown }): string | undefined {
  const url = isObject(given) ? given.url : given
  return (type === 'image_url' || type === 'input_image') && typeof url === 'string' ? url : undefined
}

function partOf({ type, ...part }: { readonly type: string; readonly [field: string]: unknown }, list: List, at: number): string {
  const text = type === 'refusal' ? part.refusal : part.text
  if (/^(?:(?:input_|output_)?text|refusal)$/.test(type) && typeof text === 'string') return text
  throw unsupported(list, `${list}.${at}: a part of the type ${JSON.stringify(type)} cannot be read here; send text`)
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || (Array.isArray(value) && value.length === 0)
}

export function unsupported(param: string, message: string): HttpError {
  return new HttpError(400, 'unsupported_parameter', message, {}, { type: 'invalid_request_error', param })
}

type FinishedTurn = { readonly conversation: Pick<Conversation, 'usage' | 'unanswered'>; readonly ending: Ending }

/** Returns the pieces of text of a turn: those that streamed, or whole texts where none did. Rounds are separated by an empty line. */
export function createPieces() {
  const state = { sent: '', any: false }
  const begun = (text: string) => (state.any && state.sent === '' && text !== '' ? `\n\n${text}` : text)
  return (event: AgentEvent): string => {
    if (event.type !== 'text') return ''
    if (event.isPartial) {
      const piece = begun(event.content)
      state.sent += event.content
      return piece
    }
    // A call that was tried again has streamed another text.
    const rest = event.content.startsWith(state.sent) ? event.content.slice(state.sent.length) : `\n\n${event.content}`
    const piece = begun(rest)
    Object.assign(state, { sent: '', any: true })
    return piece
  }
}

/** Names what stopped the turn below the model's own text: "done" must not stand alone when a call was denied. */
export function noteOf({ conversation, ending }: FinishedTurn): string {
  const open = conversation.unanswered()
  if (failureOf(ending) || (ending.code === 'answered' && open.length === 0)) return ''
  const note = ending.code === 'answered' ? 'approval needed' : endingNote(ending)
  return `\n\n[${note}${open.length > 0 ? `; open questions: ${open.join(', ')}` : ''}]`
}

/** Returns the failure of a turn that gave no answer. */
export function failureOf({ code, message }: Ending): HttpError | undefined {
  const known: { readonly [code: string]: readonly [status: number, type: string] } = {
    provider: [502, 'server_error'],
    timeout: [504, 'server_error'],
    error: [500, 'server_error'],
    stalled: [500, 'server_error'],
    integrity: [500, 'server_error'],
    budget: [429, 'insufficient_quota'],
    estop: [503, 'server_error'],
    cancelled: [503, 'server_error'],
  }
  const found = known[code]
  // A client would try a spent budget or a stop again and again.
  return (
    found &&
    new HttpError(found[0], code, message, code === 'budget' || code === 'estop' ? { 'x-should-retry': 'false' } : {}, { type: found[1] })
  )
}

export function finishOf({ conversation, ending: { code } }: FinishedTurn): 'stop' | 'length' | 'content_filter' {
  if (code === 'limit') return 'length'
  const isPartial = ['denied', 'approval_needed', 'checks_failed'].includes(code)
  return isPartial || conversation.unanswered().length > 0 ? 'content_filter' : 'stop'
}

function usageOf({ conversation }: FinishedTurn) {
  const { inputTokens = 0, outputTokens = 0, cachedInputTokens = 0 } = conversation.usage() ?? {}
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    prompt_tokens_details: { cached_tokens: cachedInputTokens },
  }
}

/** The fields that every answer to a request repeats. */
type AnswerHead = { readonly id: string; readonly created: number; readonly model: string }

function completionOf(head: AnswerHead, text: string, done: FinishedTurn) {
  const message = { role: 'assistant', content: text, refusal: null }
  const choice = { index: 0, message, finish_reason: finishOf(done), logprobs: null }
  return { ...head, object: 'chat.completion' as const, choices: [choice], usage: usageOf(done) }
}
