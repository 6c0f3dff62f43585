/** Sends requests to the control plane: encodes them, repeats those that may be repeated when the connection breaks, and turns refusals into errors. */

import { isObject } from '../../kit/json.ts'
import { explain } from '../../workspace/net/trouble.ts'
import { isRefusalCode, PlaneRefusal, type RefusalCode } from '../contract/plane-refusal.ts'

export type TransportOptions = {
  /** Where the daemon listens, for example http://127.0.0.1:3100 (CONTROLPLANE_API_URL). */
  readonly url: string
  /** An operator token, an agent key or a run token; asked for each time, so that a rotated one is used at once. */
  readonly token: () => string
  /** The guarded fetch. */
  readonly fetch: typeof fetch
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>
  readonly random: () => number
  /** How often a request that may be repeated is sent at most (default 4). */
  readonly attempts?: number
  /** How long an answer may take, in ms (default 30,000). */
  readonly timeoutMs?: number
  /** Aborted: every request ends, and none is sent or repeated any more. */
  readonly stop?: AbortSignal
}

export type Call = {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Below /api/controlplane unless it begins with a slash. */
  readonly path: string
  readonly query?: { readonly [name: string]: string | number | boolean | undefined }
  readonly body?: unknown
  /** Whether texts of the body are sent as they are; else NUL characters and halves of characters become U+FFFD, which the daemon would refuse. */
  readonly anyText?: boolean
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
  readonly timeoutMs?: number
  /** Whether it may be sent again after a broken connection: all but POST may, and POST with an Idempotency-Key. */
  readonly repeatable?: boolean
}

export type Transport = {
  /** Resolves for statuses below 400. @throws PlaneRefusal, also "unavailable" when the daemon cannot be reached */
  send(call: Call): Promise<Response>
  /** As `send`, and reads the answer; undefined for 204. */
  json<T>(call: Call): Promise<T>
}

export function createTransport(options: TransportOptions): Transport {
  const { attempts = 4, timeoutMs = 30_000 } = options

  async function once(call: Call): Promise<Response> {
    const limit = AbortSignal.timeout(call.timeoutMs ?? timeoutMs)
    const signal = AbortSignal.any([call.signal, options.stop, limit].filter((each) => each !== undefined))
    const response = await options.fetch(urlOf(options.url, call), {
      method: call.method,
      headers: {
        authorization: `Bearer ${options.token()}`,
        ...(call.body === undefined ? {} : { 'content-type': 'application/json' }),
        ...call.headers,
      },
      body: JSON.stringify(call.body, call.anyText ? undefined : storable),
      signal,
    })
    if (response.status < 400) return response
    throw await refusalOf(response)
  }

  async function send(call: Call): Promise<Response> {
    const most = mayRepeat(call) ? attempts : 1
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await once(call)
      } catch (error) {
        if (call.signal?.aborted || options.stop?.aborted) throw error
        const refusal = error instanceof PlaneRefusal ? error : unreachable(options.url, error)
        if (refusal.code !== 'unavailable' || attempt >= most) throw refusal
        const wait = refusal.details.retry_after_ms ?? 50 * 2 ** attempt * (0.5 + options.random())
        await options.sleep(wait, call.signal ?? options.stop ?? new AbortController().signal)
      }
    }
  }

  return {
    send,
    async json<T>(call: Call) {
      const response = await send(call)
      // Our own daemon answers by the contract; what it says is not judged again here.
      return (response.status === 204 ? undefined : await response.json()) as T
    },
  }
}

/** What a child process printed may be anything, and its error should arrive all the same. */
function storable(_name: string, value: unknown): unknown {
  return typeof value === 'string' ? value.replaceAll('\0', '\u{fffd}').toWellFormed() : value
}

function mayRepeat({ method, repeatable }: Call): boolean {
  return repeatable ?? method !== 'POST'
}

function urlOf(base: string, { path, query = {} }: Call): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)] satisfies [string, string]],
  )
  const asked = given.length > 0 ? `?${new URLSearchParams(given)}` : ''
  return `${base.replace(/\/+$/, '')}${path.startsWith('/') ? path : `/api/controlplane/${path}`}${asked}`
}

function unreachable(url: string, error: unknown): PlaneRefusal {
  return new PlaneRefusal('unavailable', `the control plane at ${url} cannot be reached: ${explain(error)}`)
}

/** Codes of answers that the HTTP layer itself gave: it has words of its own. */
const byStatus: { readonly [status: number]: RefusalCode } = {
  400: 'bad_request',
  401: 'unauthorized',
  402: 'budget_exceeded',
  403: 'forbidden',
  404: 'not_found',
  405: 'bad_request',
  408: 'unavailable',
  409: 'conflict',
  413: 'too_large',
  415: 'bad_request',
  422: 'idempotency_mismatch',
  429: 'too_many',
}

/** Another daemon still answers the same request: to ask again is right. */
const byCode: { readonly [code: string]: RefusalCode } = { in_progress: 'unavailable', too_busy: 'unavailable' }

/** Reads the body. */
async function refusalOf(response: Response): Promise<PlaneRefusal> {
  const told: unknown = await response.json().catch(() => undefined)
  const error = isObject(told) && isObject(told.error) ? told.error : {}
  const code =
    (isRefusalCode(error.code) ? error.code : undefined) ??
    (typeof error.code === 'string' ? byCode[error.code] : undefined) ??
    byStatus[response.status] ??
    'unavailable'
  const message = typeof error.message === 'string' ? error.message : `the control plane answered with status ${response.status}`
  const details = isObject(error.details) ? error.details : {}
  const wait = typeof error.retry_after_ms === 'number' ? error.retry_after_ms : secondsOf(response)
  return new PlaneRefusal(code, message, { ...details, ...(wait === undefined ? {} : { retry_after_ms: wait }) })
}

function secondsOf({ headers }: Response): number | undefined {
  const seconds = Number(headers.get('retry-after') ?? Number.NaN)
  return Number.isFinite(seconds) ? seconds * 1000 : undefined
}
