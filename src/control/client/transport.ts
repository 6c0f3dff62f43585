/** Sends requests to the control plane: encodes them, repeats those that may be repeated when the connection breaks, and turns refusals into errors. */

import { isObject } from '../../kit/json.ts'
import { explain } from '../../workspace/net/trouble.ts'
import { isRefusalCode, PlaneRefusal, type RefusalCode } from '../contract/plane-refusal.ts'

export type TransportOptions = {
  /** Where the daemon listens, for example http://127.0.0.1:3100 (CONTROLPLANE_API_URL). */
  readonly url: string
  /** Returns an operator token, an agent key or a run token; called each time, so that a rotated one is used at once. */
  readonly token: () => string
  /** The guarded fetch. */
  readonly fetch: typeof fetch
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>
  readonly random: () => number
  /** A request that may be repeated is sent at most this often (default 4). */
  readonly attempts?: number
  /** An answer may take this many ms (default 30,000). */
  readonly timeoutMs?: number
  /** Ends every request when it aborts, and no request is sent or repeated afterwards. */
  readonly stop?: AbortSignal
}

export type ControlRequest = {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Below /api/controlplane unless it begins with a slash. */
  readonly path: string
  readonly query?: { readonly [name: string]: string | number | boolean | undefined }
  readonly body?: unknown
  /** Sends texts of the body unchanged; otherwise NUL characters and halves of characters, which the daemon refuses, become U+FFFD. */
  readonly anyText?: boolean
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
  readonly timeoutMs?: number
  /** Tells whether it may be sent again after a broken connection: by default all but POST; POST needs an Idempotency-Key. */
  readonly repeatable?: boolean
}

export type Transport = {
  /** Resolves for statuses below 400. @throws PlaneRefusal, also "unavailable" when the daemon cannot be reached */
  send(call: ControlRequest): Promise<Response>
  /** Sends and reads the answer; undefined for 204. */
  json<T>(call: ControlRequest): Promise<T>
}

export function createTransport(options: TransportOptions): Transport {
  const { attempts = 4, timeoutMs = 30_000 } = options

  async function once(call: ControlRequest): Promise<Response> {
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

  async function send(call: ControlRequest): Promise<Response> {
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
    async json<T>(call: ControlRequest) {
      const response = await send(call)
      // Our own daemon answers by the contract, so the client does not check the answer again.
      return (response.status === 204 ? undefined : await response.json()) as T
    },
  }
}

/** Makes any text of a child process storable, so that its error arrives. */
function storable(_name: string, value: unknown): unknown {
  return typeof value === 'string' ? value.replaceAll('\0', '\u{fffd}').toWellFormed() : value
}

function mayRepeat({ method, repeatable }: ControlRequest): boolean {
  return repeatable ?? method !== 'POST'
}

function urlOf(base: string, { path, query = {} }: ControlRequest): string {
  const present = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)] satisfies [string, string]],
  )
  const asked = present.length > 0 ? `?${new URLSearchParams(present)}` : ''
  return `${base.replace(/\/+$/, '')}${path.startsWith('/') ? path : `/api/controlplane/${path}`}${asked}`
}

function unreachable(url: string, error: unknown): PlaneRefusal {
  return new PlaneRefusal('unavailable', `the control plane at ${url} cannot be reached: ${explain(error)}`)
}

/** Translates answers of the HTTP layer, which has codes of its own. */
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

/** Another daemon still answers the same request, so the client should ask again. */
const byCode: { readonly [code: string]: RefusalCode } = { in_progress: 'unavailable', too_busy: 'unavailable' }

/** Reads a refusal from the body of an answer. */
async function refusalOf(response: Response): Promise<PlaneRefusal> {
  const body: unknown = await response.json().catch(() => undefined)
  const error = isObject(body) && isObject(body.error) ? body.error : {}
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
