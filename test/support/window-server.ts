/**
 * Simulates an OpenAI-compatible server with a window: it counts tokens in its own way, refuses what is longer in the words of a chosen
 * vendor, and can report wrong usages or cut silently. It has no tests of its own.
 */

import { isObject, parseJson } from '../../src/kit/json.ts'

/** What a vendor answers to a request of `sent` tokens, `asked` of the answer among them. */
type Refusal = (sent: number, asked: number, window: number) => Response

const json = (body: unknown, status = 400) => Response.json(body, { status })
const sse = (...events: unknown[]) =>
  new Response(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(''), { headers: { 'content-type': 'text/event-stream' } })

/** The refusals of the vendors, in their own words. */
export const wordings = {
  openai: (sent, asked, window) =>
    json({
      error: {
        message: `This model's maximum context length is ${window} tokens. However, you requested ${sent} tokens (${sent - asked} in the messages, ${asked} in the completion). Please reduce the length of the messages or completion.`,
        type: 'invalid_request_error',
        param: 'messages',
        code: 'context_length_exceeded',
      },
    }),
  responses: () =>
    json({
      error: {
        message: 'Your input exceeds the context window of this model. Please adjust your input and try again.',
        type: 'invalid_request_error',
        param: 'input',
        code: 'context_length_exceeded',
      },
    }),
  anthropic: (sent, _, window) =>
    json({ type: 'error', error: { type: 'invalid_request_error', message: `prompt is too long: ${sent} tokens > ${window} maximum` } }),
  openrouter: (sent, asked, window) =>
    json({
      error: {
        message: 'Provider returned error',
        code: 400,
        metadata: {
          provider_name: 'Far',
          raw: JSON.stringify({
            error: {
              message: `This endpoint's maximum context length is ${window} tokens. However, you requested about ${sent} tokens (${sent - asked} of text input, ${asked} in the output).`,
              code: 400,
            },
          }),
        },
      },
    }),
  gemini: (sent, _, window) =>
    json([
      {
        error: {
          code: 400,
          message: `The input token count (${sent}) exceeds the maximum number of tokens allowed (${window}).`,
          status: 'INVALID_ARGUMENT',
        },
      },
    ]),
  llamaCpp: (sent, _, window) =>
    json({
      error: {
        code: 400,
        message: `request (${sent} tokens) exceeds the available context size (${window} tokens), try increasing it`,
        type: 'exceed_context_size_error',
        n_prompt_tokens: sent,
        n_ctx: window,
      },
    }),
  vllm: (sent, asked, window) =>
    json({
      object: 'error',
      message: `This model's maximum context length is ${window} tokens. However, you requested ${sent} tokens (${sent - asked} in the messages, ${asked} in the completion). Please reduce the length of the messages or completion.`,
      type: 'BadRequestError',
      param: null,
      code: 400,
    }),
  lmStudio: (sent, _, window) =>
    json({
      error: `Trying to keep the first ${sent} tokens when context the overflows. However, the model is loaded with context length of only ${window} tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input`,
    }),
  /** An error event inside a stream that began with status 200. */
  stream: (sent, _, window) =>
    sse({
      error: { message: `prompt is too long: ${sent.toLocaleString('en')} tokens > ${window.toLocaleString('en')} maximum`, code: 400 },
    }),
  /** No words and no numbers. */
  plain413: () => new Response('Request Entity Too Large', { status: 413 }),
} as const satisfies { readonly [vendor: string]: Refusal }

export type Wording = keyof typeof wordings

export type WindowRequest = {
  readonly path: string
  readonly body: unknown
  /** The tokens of the request as the server counts them, without the answer. */
  readonly tokens: number
  /** The limit of the answer that the request sets; 0 without one. */
  readonly answer: number
  readonly outcome: 'answered' | 'refused' | 'cut'
}

export type WindowServerOptions = {
  /** In tokens of this server, of a request and its answer together. */
  readonly window: number
  readonly wording?: Wording
  /** Cuts the beginning of what is too long and answers, as Ollama does. */
  readonly cuts?: boolean
  /** Returns the `prompt_tokens` to report; default: the true number. Undefined: no usage at all. */
  readonly usage?: (tokens: number, n: number) => number | undefined
  /** Returns the answer to a request that fits: a text, or a whole chat completion message; default: "ok". */
  readonly reply?: (request: WindowRequest, n: number) => string | { readonly [key: string]: unknown }
  /** Answers other paths, such as `/api/show`; default: 404. */
  readonly other?: (path: string, request: Request) => Response | undefined | Promise<Response | undefined>
}

export type WindowServer = Disposable & {
  /** The base URL, with `/v1`. */
  readonly url: string
  /** The chat requests so far. */
  readonly requests: readonly WindowRequest[]
  /** The paths of all other requests so far. */
  readonly others: readonly string[]
  /** Changes the window from now on. */
  setWindow(tokens: number): void
}

/** Listens on a free loopback port. */
export function startWindowServer(options: WindowServerOptions): WindowServer {
  const { wording = 'openai', cuts = false, usage = (tokens) => tokens, reply = () => 'ok', other = () => undefined } = options
  const requests: WindowRequest[] = []
  const others: string[] = []
  const state = { window: options.window }

  async function chat(path: string, body: unknown): Promise<Response> {
    const fields = isObject(body) ? body : {}
    const tokens = serverTokens(fields)
    const answer = Number(fields.max_tokens ?? fields.max_completion_tokens ?? 0)
    const fits = tokens + answer <= state.window
    const request: WindowRequest = { path, body, tokens, answer, outcome: fits ? 'answered' : cuts ? 'cut' : 'refused' }
    const n = requests.push(request) - 1
    if (!fits && !cuts) return wordings[wording](tokens + answer, answer, state.window)
    const given = reply(request, n)
    const message = typeof given === 'string' ? { role: 'assistant', content: given } : { role: 'assistant', content: null, ...given }
    const counted = usage(Math.min(tokens, state.window), n)
    const model = String(fields.model)
    return completion({ model, message, streams: fields.stream === true, ...(counted === undefined ? {} : { prompt: counted }) })
  }

  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const path = new URL(request.url).pathname
      if (path === '/v1/chat/completions') return await chat(path, parseJson(await request.text()))
      others.push(path)
      return (await other(path, request)) ?? new Response('not found', { status: 404 })
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}/v1`,
    requests,
    others,
    setWindow(tokens) {
      state.window = tokens
    },
    [Symbol.dispose]: () => void server.stop(true),
  }
}

type Completion = {
  readonly model: string
  readonly message: { readonly [key: string]: unknown }
  readonly streams: boolean
  readonly prompt?: number
}

function completion({ model, message, streams, prompt }: Completion): Response {
  const finish = message.tool_calls ? 'tool_calls' : 'stop'
  const usage = prompt === undefined ? {} : { usage: { prompt_tokens: prompt, completion_tokens: 5, total_tokens: prompt + 5 } }
  const head = { id: 'c', created: 1, model }
  if (!streams)
    return Response.json({ ...head, object: 'chat.completion', choices: [{ index: 0, message, finish_reason: finish }], ...usage })
  const calls = Array.isArray(message.tool_calls) ? message.tool_calls.map((call, index) => ({ index, ...Object(call) })) : undefined
  const delta = { ...message, ...(calls ? { tool_calls: calls } : {}) }
  const chunk = { ...head, object: 'chat.completion.chunk' }
  const events = [
    { ...chunk, choices: [{ index: 0, delta, finish_reason: null }] },
    { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: finish }] },
    { ...chunk, choices: [], ...usage },
  ]
  const text = `${events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')}data: [DONE]\n\n`
  return new Response(text, { headers: { 'content-type': 'text/event-stream' } })
}

/** Returns one call of a tool as a chat completion message, for `reply`. */
export function callOf(id: string, name: string, input: unknown): { readonly [key: string]: unknown } {
  return { tool_calls: [{ id, type: 'function', function: { name, arguments: JSON.stringify(input) } }] }
}

/** Counts a chat request as the server does: each message with 4 tokens around it, and the tools as JSON. */
export function serverTokens(body: { readonly [key: string]: unknown }): number {
  const messages = Array.isArray(body.messages) ? body.messages : []
  const tools = body.tools === undefined ? 0 : countTokens(JSON.stringify(body.tools))
  return messages.reduce((sum: number, message: unknown) => sum + 4 + countTokens(textIn(message)), tools)
}

/** Returns every string in the message, without the names of its members. */
function textIn(value: unknown): string {
  if (typeof value === 'string') return value
  if (Array.isArray(value)) return value.map(textIn).join(' ')
  return isObject(value) ? Object.values(value).map(textIn).join(' ') : ''
}

const cjk = /[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]/g
const base64 = /[A-Za-z0-9+/=]{40,}/g

/** Counts 1 token a byte of base64, 1 a CJK character, and 1 for each 4 bytes of anything else. */
export function countTokens(text: string): number {
  let counted = 0
  const rest = text
    .replace(base64, (run) => {
      counted += run.length
      return ''
    })
    .replace(cjk, () => {
      counted += 1
      return ''
    })
  return counted + Math.ceil(Buffer.byteLength(rest) / 4)
}
