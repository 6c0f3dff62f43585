/** Sends one request over one connection, and turns errors, web pages, oversized answers and silence into a ProviderFailure. */

import { isObject, parseJson } from '../../kit/json.ts'
import { type ChatRequest, type ChatResponse, type ModelChunk, ProviderFailure } from '../../runtime/port.ts'
import type { Deadline } from './deadline.ts'
import { codeOf, cut, failureOf, lengthRefusal, retryAfterMs, vendorMessage, waitIn } from './failure-of-response.ts'
import type { Fetch, ProviderDeps, WireConfig } from './provider-settings.ts'
import { type Body, type BodyLimits, errorBodyBytes, lineLimit, networkFailure, openBody, tooLarge } from './reply-body.ts'
import type { Reported } from './usage.ts'

/** A server may answer with one JSON document although we requested a stream, but never with a stream where we requested a document. */
type WireAnswer =
  | { readonly type: 'document'; readonly value: unknown }
  | { readonly type: 'stream'; readonly head: Pick<Response, 'status' | 'headers'>; readonly body: Body }

type Wire = ReturnType<typeof openWire>

type WireOptions = BodyLimits & {
  readonly fetch: Fetch
  readonly now: () => number
  readonly streaming: boolean
  /** Advice for a refused key. */
  readonly keyHint: string
}

export function openWire(options: WireOptions) {
  const { provider, deadline } = options
  const own = new AbortController()
  const state: { body?: Body } = {}
  const stop = () => own.abort(deadline.signal.reason)
  const disconnected = new Promise<never>((_, reject) =>
    own.signal.addEventListener('abort', () => reject(own.signal.reason), { once: true }),
  )
  disconnected.catch(() => {})
  if (deadline.signal.aborted) stop()
  else deadline.signal.addEventListener('abort', stop, { once: true })

  async function send(url: string, init: RequestInit): Promise<Response> {
    deadline.waiting()
    try {
      return await Promise.race([options.fetch(url, { ...init, signal: own.signal, redirect: 'manual' }), disconnected])
    } catch (error) {
      throw networkFailure({ error, provider, signal: own.signal, doing: `reach ${url}` })
    } finally {
      deadline.arrived()
    }
  }

  return {
    async ask(url: string, init: RequestInit): Promise<WireAnswer> {
      const response = await send(url, init)
      const body = openBody({ limits: options, body: response.body, signal: own.signal, disconnected })
      state.body = body
      if (!response.ok) throw await refusal({ options, response, body, url })
      const first = await body.peek()
      if (first === '{' || first === '[') return await readDocument(body, options)
      if (first === '' || first === '<' || !options.streaming) throw await noAnswer({ options, response, body, first })
      return { type: 'stream', head: response, body }
    },
    /** Ends the connection. */
    close(): void {
      deadline.signal.removeEventListener('abort', stop)
      if (state.body?.ended()) return
      own.abort(new ProviderFailure('aborted', `the connection to provider "${provider}" is closed`, { provider }))
    },
  }
}

async function readDocument(body: Body, options: WireOptions): Promise<WireAnswer> {
  const { text, whole } = await body.text(lineLimit(options.maxBytes))
  if (!whole) throw tooLarge(options)
  const value = parseJson(text)
  if (value === undefined) throw bad(options.provider, `answered with broken JSON: ${cut(text)}`)
  const error = isObject(value) ? value.error : undefined
  if (error !== undefined && error !== null) throw failureOf(error, options.provider)
  return { type: 'document', value }
}

async function refusal(at: { options: WireOptions; response: Response; body: Body; url: string }): Promise<ProviderFailure> {
  const { options, response } = at
  const { text } = await at.body.text(errorBodyBytes).catch(() => ({ text: '' }))
  const moved = response.headers.get('location')
  const reason =
    moved !== null ? `a redirect to ${cut(moved)}; set base_url to where it should go` : vendorMessage(text) || response.statusText
  const lengths = lengthRefusal(response.status, text)
  const code = lengths ? 'context_length' : codeOf(response.status, `${text.slice(0, 2_000)} ${reason}`)
  const hint = code === 'auth' ? `; ${options.keyHint}` : ''
  return new ProviderFailure(code, `provider "${options.provider}" answered ${response.status} at ${at.url}: ${reason}${hint}`, {
    status: response.status,
    retryAfterMs:
      retryAfterMs(response.headers, options.now()) ??
      (code === 'rate_limit' || code === 'server' ? waitIn(text.slice(0, 2_000)) : undefined),
    provider: options.provider,
    ...lengths,
  })
}

async function noAnswer(at: { options: WireOptions; response: Response; body: Body; first: string }): Promise<ProviderFailure> {
  const { text } = await at.body.text(errorBodyBytes)
  const what = at.first === '' ? 'nothing' : at.first === '<' ? 'a web page' : 'no JSON'
  return bad(at.options.provider, `answered ${at.response.status} with ${what}; is base_url right? ${cut(text)}`.trim())
}

function bad(provider: string, what: string): ProviderFailure {
  return new ProviderFailure('bad_response', `provider "${provider}" ${what}`, { provider })
}

/** The input of a dialect for one attempt at one request. */
export type DialectRequest = {
  readonly name: string
  readonly config: WireConfig
  readonly deps: ProviderDeps
  readonly request: ChatRequest
  readonly deadline: Deadline
  readonly wire: Wire
  /** Has no trailing slash. */
  readonly baseUrl: string
  readonly maxBytes: number
  /** The members that the server was found to refuse. */
  readonly quirks: Set<string>
}

/** A complete reply. `bytes` counts the model's own text, without the framing around it. */
export type WireReply = Pick<ChatResponse, 'parts' | 'stop' | 'model' | 'rawProviderPayload'> & {
  readonly usage: Reported
  readonly bytes: number
}

/**
 * Both functions may throw anything; `http-provider.ts` turns it into a ProviderFailure. Not a generator, because each generator layer
 * costs a microsecond per chunk.
 */
export type Exchange = {
  /** Returns the next piece as it arrives; undefined at the end. */
  next(): Promise<ModelChunk | undefined>
  /** Call once, after the end. */
  reply(): WireReply
}
