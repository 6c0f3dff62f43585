/** Serves tools, resources and prompts over the Model Context Protocol, to clients of both eras (2026-07-28, and 2025-11-25 and older). */

import {
  CLIENT_CAPABILITIES_META_KEY,
  createMcpHandler,
  inputRequired,
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  Server,
  type ServerContext,
  type Tool,
} from '@modelcontextprotocol/server'
import { errorText } from '../../kit/errors.ts'
import { isObject, type JsonObject } from '../../kit/json.ts'
import type { ToolSpec } from '../../runtime/port.ts'

/** The end of a call, or a question that a person has to answer before the call continues. */
export type CallStep = CallResult | Question
type CallResult = { readonly type: 'result'; readonly text: string; readonly isError: boolean }
type Question = {
  readonly type: 'question'
  readonly message: string
  /** Resolves when the question is answered, or nobody waits for its answer any more. */
  readonly closed: Promise<unknown>
  answer(allow: boolean, context: CallContext): Promise<CallStep>
}

export type CallContext = {
  /** Aborts when the client cancels the call or has gone; it counts until the next step. */
  readonly signal: AbortSignal
  /** Tells whether the client can put a question to a person. */
  readonly canAsk: boolean
  readonly progress: (message: string) => void
}

/** Lists what a server offers. Functions may throw an Error whose message the client reads. */
export type McpOffer = {
  readonly name: string
  readonly version: string
  tools(): Promise<readonly ToolSpec[]>
  call(name: string, input: JsonObject, context: CallContext): Promise<CallStep>
  /** A URI with braces is a template (RFC 6570). */
  readonly resources?: readonly Described<'uri'>[]
  /** Returns JSON; undefined for a URI that does not exist. */
  readonly read?: (uri: string) => Promise<unknown>
  readonly prompts?: () => Promise<readonly Described<'text'>[]>
  /** Returns the values of the variable of a template that begin so, the best first. */
  readonly complete?: (template: string, begin: string) => Promise<readonly string[]>
}

type Described<Key extends string> = { readonly [key in Key | 'name' | 'description']: string }

export type ServerOptions = {
  /** Keeps the questions that wait for an answer, each by a key that nobody can guess; one map for all requests of a client. */
  readonly waiting?: Map<string, Question>
  /** Returns a signal that ends the call early; `over` aborts when the call has ended. */
  readonly limit?: (over: AbortSignal) => AbortSignal
}

/** A client with so many open questions is asked no more: its calls wait for an operator. */
const mostWaiting = 100
const progressMs = 250
/** The protocol permits no more values in one answer. */
const mostCompletions = 100
const requestedSchema = { type: 'object' as const, properties: { allow: { type: 'boolean' as const } }, required: ['allow'] }

/** Returns a server for one connection, or for one request. */
export function createMcpServer(offer: McpOffer, { waiting = new Map(), limit = (over) => over }: ServerOptions = {}): Server {
  const { name, version, resources = [], read, prompts = async () => [], complete } = offer
  const server = new Server({ name, version }, { capabilities: { tools: {}, resources: {}, prompts: {}, completions: {} } })
  const tools = async () =>
    (await offer.tools()).map(({ name, description, parameters }) => ({
      name,
      description,
      inputSchema: parameters as Tool['inputSchema'],
    }))
  server.setRequestHandler('tools/list', async () => ({ tools: await tools() }))

  server.setRequestHandler('tools/call', async ({ params }, context) => {
    const key = context.mcpReq.requestState<string>()
    const canAsk = waiting.size < mostWaiting && hasForms(context.mcpReq.envelope, server.getClientCapabilities())
    const over = new AbortController()
    const call = { signal: AbortSignal.any([context.mcpReq.signal, limit(over.signal)]), canAsk, progress: progressOf(context) }
    const question = waiting.get(key ?? '')
    try {
      if (key !== undefined && !question) throw new Error('this question is closed already; call the tool again')
      const step = await (question
        ? question.answer(isAllowed(context.mcpReq.inputResponses?.approval), call)
        : offer.call(params.name, (params.arguments ?? {}) as JsonObject, call))
      if (step.type === 'result') return resultOf(step)
      const requestState = crypto.randomUUID()
      waiting.set(requestState, step)
      void step.closed.then(() => waiting.delete(requestState))
      return inputRequired({ requestState, inputRequests: { approval: inputRequired.elicit({ message: step.message, requestedSchema }) } })
    } catch (error) {
      return resultOf({ text: errorText(error), isError: true })
    } finally {
      over.abort()
    }
  })

  const mimeType = 'application/json'
  const described = (isTemplate: boolean) =>
    resources.filter(({ uri }) => uri.includes('{') === isTemplate).map((each) => ({ ...each, mimeType }))
  server.setRequestHandler('resources/list', async () => ({ resources: described(false) }))
  server.setRequestHandler('resources/templates/list', async () => ({
    resourceTemplates: described(true).map(({ uri: uriTemplate, ...each }) => ({ ...each, uriTemplate })),
  }))
  server.setRequestHandler('resources/read', async ({ params: { uri } }) => {
    const value = await read?.(uri)
    if (value === undefined) throw new ResourceNotFoundError(uri)
    return { contents: [{ uri, mimeType, text: JSON.stringify(value) }] }
  })

  server.setRequestHandler('completion/complete', async ({ params: { ref, argument } }) => {
    const values = ref.type === 'ref/resource' ? ((await complete?.(ref.uri, argument.value)) ?? []) : []
    return { completion: { values: values.slice(0, mostCompletions), total: values.length, hasMore: values.length > mostCompletions } }
  })

  server.setRequestHandler('prompts/list', async () => ({
    prompts: (await prompts()).map(({ name, description }) => ({ name, description })),
  }))
  server.setRequestHandler('prompts/get', async ({ params: { name } }) => {
    const found = (await prompts()).find((each) => each.name === name)
    if (!found) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `the prompt ${name.slice(0, 200)} does not exist`)
    return { messages: [{ role: 'user', content: { type: 'text', text: found.text } }] }
  })
  return server
}

function resultOf({ text, isError }: Pick<CallResult, 'text' | 'isError'>) {
  return { content: [{ type: 'text' as const, text }], isError }
}

/** Reads the capabilities that came with the request, else those of the connection. A client that names no mode has forms. */
function hasForms(envelope: { readonly [CLIENT_CAPABILITIES_META_KEY]?: unknown } = {}, ofConnection: unknown): boolean {
  const capabilities = envelope[CLIENT_CAPABILITIES_META_KEY] ?? ofConnection
  const elicitation = isObject(capabilities) ? capabilities.elicitation : undefined
  return isObject(elicitation) && ('form' in elicitation || !('url' in elicitation))
}

/** Takes an answer of the client for a no unless it says yes in full. */
function isAllowed(response: unknown): boolean {
  return isObject(response) && response.action === 'accept' && isObject(response.content) && response.content.allow === true
}

/** Sends a few messages a second at most; none to a client that did not ask for them. */
function progressOf({ mcpReq: { _meta, notify } }: ServerContext): CallContext['progress'] {
  const state = { count: 0, next: 0 }
  const { progressToken } = _meta ?? {}
  return (message) => {
    if (progressToken === undefined || Date.now() < state.next) return
    state.next = Date.now() + progressMs
    state.count += 1
    // A client that has gone reads no progress.
    void notify({ method: 'notifications/progress', params: { progressToken, progress: state.count, message } }).catch(() => {})
  }
}

/** Answers one request of streamable HTTP whose body was read already. */
export function answerRequest(request: Request, parsedBody: unknown, offer: McpOffer, options: ServerOptions): Promise<Response> {
  return createMcpHandler(() => createMcpServer(offer, options)).fetch(request, { parsedBody })
}
