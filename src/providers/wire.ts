/** The fetch that a vendor's library is given: it turns what no library should see (errors, pages, floods, silence) into a ProviderFailure. */

import { isObject } from '../kit/json.ts'
import { ProviderFailure } from '../runtime/port.ts'
import { type Body, type BodyLimits, errorBodyBytes, lineLimit, networkFailure, openBody, tooLarge } from './body.ts'
import { codeOf, cut, errorText, failureOf, retryAfterMs } from './failure.ts'
import { type Delta, mergeDeltas } from './merge.ts'
import type { Fetch } from './settings.ts'

export type Wire = {
  readonly fetch: typeof globalThis.fetch
  /** A plain JSON answer came where a stream was asked for; the next `fetch` answers with it and sends nothing. */
  hasDocument(): boolean
  /** Ends the connection. */
  close(): void
}

type Options = BodyLimits & {
  readonly fetch: Fetch
  readonly now: () => number
  readonly streaming: boolean
  /** What a piece of plain text looks like on this wire. */
  readonly delta?: Delta
  /** What to do about a refused key, in words. */
  readonly keyHint: string
}

export function openWire(options: Options): Wire {
  const { provider, deadline } = options
  const own = new AbortController()
  const stop = () => own.abort(deadline.signal.reason)
  const gone = new Promise<never>((_, reject) => own.signal.addEventListener('abort', () => reject(own.signal.reason), { once: true }))
  gone.catch(() => {})
  if (deadline.signal.aborted) stop()
  else deadline.signal.addEventListener('abort', stop, { once: true })
  let document: string | undefined

  async function send(url: string, init: RequestInit): Promise<Response> {
    if (document !== undefined) return json(document)
    const response = await ask(url, init)
    const body = openBody({ limits: options, body: response.body, signal: own.signal, gone })
    if (!response.ok) throw await refusal({ options, response, body, url })
    const first = await body.peek()
    if (first === '{' || first === '[') return whole(await jsonText(body, options))
    if (first === '' || first === '<' || !options.streaming) throw await noAnswer({ options, response, body, first })
    return new Response(body.stream(merging(options.delta)), { status: response.status, headers: response.headers })
  }

  async function ask(url: string, init: RequestInit): Promise<Response> {
    deadline.waiting()
    try {
      return await Promise.race([options.fetch(url, { ...init, signal: own.signal, redirect: 'manual' }), gone])
    } catch (error) {
      throw networkFailure({ error, provider, signal: own.signal, doing: `reach ${url}` })
    } finally {
      deadline.heard()
    }
  }

  function whole(text: string): Response {
    if (!options.streaming) return json(text)
    document = text
    throw bad(provider, 'answered with JSON instead of a stream')
  }

  return {
    fetch: Object.assign((input: string | URL | Request, init?: RequestInit) => send(String(input), init ?? {}), { preconnect() {} }),
    hasDocument: () => document !== undefined,
    close() {
      deadline.signal.removeEventListener('abort', stop)
      own.abort(new ProviderFailure('aborted', `the connection to provider "${provider}" is closed`, { provider }))
    },
  }
}

function merging(delta: Delta | undefined): (bytes: Uint8Array) => Uint8Array {
  return (bytes) => (delta === undefined ? bytes : mergeDeltas(bytes, delta))
}

async function jsonText(body: Body, options: Options): Promise<string> {
  const { text, whole } = await body.text(lineLimit(options.maxBytes))
  if (!whole) throw tooLarge(options)
  const value = parse(text)
  if (value === undefined) throw bad(options.provider, `answered with broken JSON: ${cut(text)}`)
  const error = isObject(value) ? value.error : undefined
  if (error !== undefined && error !== null) throw failureOf(error, options.provider)
  return text
}

async function refusal(at: { options: Options; response: Response; body: Body; url: string }): Promise<ProviderFailure> {
  const { options, response } = at
  const { text } = await at.body.text(errorBodyBytes).catch(() => ({ text: '' }))
  const moved = response.headers.get('location')
  const said = moved !== null ? `a redirect to ${cut(moved)}; set base_url to where it should go` : errorText(text) || response.statusText
  const code = codeOf(response.status, `${text.slice(0, 2_000)} ${said}`)
  const hint = code === 'auth' ? `; ${options.keyHint}` : ''
  return new ProviderFailure(code, `provider "${options.provider}" answered ${response.status} at ${at.url}: ${said}${hint}`, {
    status: response.status,
    retryAfterMs: retryAfterMs(response.headers, options.now()),
    provider: options.provider,
  })
}

async function noAnswer(at: { options: Options; response: Response; body: Body; first: string }): Promise<ProviderFailure> {
  const { text } = await at.body.text(errorBodyBytes)
  const what = at.first === '' ? 'nothing' : at.first === '<' ? 'a web page' : 'no JSON'
  return bad(at.options.provider, `answered ${at.response.status} with ${what}; is base_url right? ${cut(text)}`.trim())
}

function bad(provider: string, what: string): ProviderFailure {
  return new ProviderFailure('bad_response', `provider "${provider}" ${what}`, { provider })
}

function json(text: string): Response {
  return new Response(text, { headers: { 'content-type': 'application/json' } })
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
