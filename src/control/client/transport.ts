/** Sends requests to the control plane: encodes them, repeats those that may be repeated when the connection breaks, and turns refusals into errors. */

import { isObject, parseJson } from '../../kit/json.ts'
import { explain } from '../../workspace/net/pin.ts'
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
  /** Resolves for statuses below 400. @throws PlaneRefusal, also "unavailable" when the daemon cannot be reached or something else answers */
  send(call: ControlRequest): Promise<Response>
  /** Sends and reads the answer; undefined for 204. */
  json<T>(call: ControlRequest): Promise<T>
}

export function createTransport(options: TransportOptions): Transport {
  const { attempts = 4, timeoutMs = 30_000 } = options

  async function once<T>(call: ControlRequest, read: (response: Response) => Promise<T>): Promise<T> {
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
    if (response.status >= 400) throw await refusalOf(options.url, response)
    if (response.status >= 300 || mediaType(response) === 'text/html') throw foreign(options.url, response)
    return await read(response)
  }

  async function persist<T>(call: ControlRequest, read: (response: Response) => Promise<T>): Promise<T> {
    const most = (call.repeatable ?? call.method !== 'POST') ? attempts : 1
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await once(call, read)
      } catch (error) {
        if (call.signal?.aborted || options.stop?.aborted) throw error
        const refusal = error instanceof PlaneRefusal ? error : unreachable(options.url, explain(error))
        if (refusal.code !== 'unavailable' || attempt >= most) throw refusal
        const wait = refusal.details.retry_after_ms ?? 50 * 2 ** attempt * (0.5 + options.random())
        await options.sleep(wait, call.signal ?? options.stop ?? new AbortController().signal)
      }
    }
  }

  return {
    send: (call) => persist(call, async (response) => response),
    json: <T>(call: ControlRequest) =>
      persist(call, async (response) => (response.status === 204 ? undefined : await objectIn(options.url, response)) as T),
  }
}

/** Our own daemon answers by the contract, so the client checks only that the answer is an object. */
async function objectIn(url: string, response: Response): Promise<unknown> {
  const answer = parseJson(await response.text())
  if (isObject(answer)) return answer
  throw foreign(url, response)
}

/** Describes an answer of a proxy, a portal or another server in place of the control plane, which says nothing about the request. */
function foreign(url: string, response: Response): PlaneRefusal {
  const kind = mediaType(response) || 'no content type'
  return unreachable(
    url,
    `something else answered with status ${response.status} (${kind}), not in the form of a control plane; check the address, and proxies in between`,
    waitOf(secondsOf(response)),
  )
}

function mediaType({ headers }: Response): string {
  return (headers.get('content-type') ?? '').split(';')[0]?.trim().toLowerCase().slice(0, 80) ?? ''
}

/** Makes any text of a child process storable, so that its error arrives. */
function storable(_name: string, value: unknown): unknown {
  return typeof value === 'string' ? value.replaceAll('\0', '\u{fffd}').toWellFormed() : value
}

function urlOf(base: string, { path, query = {} }: ControlRequest): string {
  const present = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)] satisfies [string, string]],
  )
  const asked = present.length > 0 ? `?${new URLSearchParams(present)}` : ''
  return `${base.replace(/\/+$/, '')}${path.startsWith('/') ? path : `/api/controlplane/${path}`}${asked}`
}

function unreachable(url: string, why: string, details: PlaneRefusal['details'] = {}): PlaneRefusal {
  return new PlaneRefusal('unavailable', `the control plane at ${url} cannot be reached: ${why}`, details)
}

/** Translates the codes of the HTTP layer, which differ from those of the plane. */
const byCode: { readonly [code: string]: RefusalCode } = {
  ...{ bad_key: 'bad_request', bad_json: 'bad_request', bad_text: 'bad_request', too_deep: 'bad_request', bad_path: 'bad_request' },
  ...{ not_json: 'bad_request', compressed_body: 'bad_request', wrong_method: 'bad_request', no_host: 'bad_request' },
  ...{ unsupported_parameter: 'bad_request', foreign_origin: 'forbidden', foreign_host: 'forbidden' },
  ...{ key_reused: 'idempotency_mismatch', interrupted: 'conflict' },
  ...{ too_many_requests: 'too_many', slow_body: 'unavailable', internal: 'unavailable' },
  // Another daemon still answers the same request, so the client should ask again.
  ...{ in_progress: 'unavailable', too_busy: 'unavailable' },
}

/**
 * Reads a refusal from the body of an answer. Only the form and the codes of our daemon are one; whatever else answers is foreign, except that
 * a proxy's limit of size is about this very request.
 */
async function refusalOf(url: string, response: Response): Promise<PlaneRefusal> {
  const body: unknown = await response.json().catch(() => undefined)
  const error = isObject(body) && isObject(body.error) ? body.error : {}
  const code = isRefusalCode(error.code) ? error.code : typeof error.code === 'string' ? byCode[error.code] : undefined
  if (response.status === 413 && code === undefined)
    return new PlaneRefusal('too_large', 'a server in between refused the request as too large (status 413); raise its limit to 16 MiB')
  if (code === undefined || typeof error.message !== 'string') return foreign(url, response)
  const wait = typeof error.retry_after_ms === 'number' ? error.retry_after_ms : secondsOf(response)
  return new PlaneRefusal(code, error.message, { ...(isObject(error.details) ? error.details : {}), ...waitOf(wait) })
}

const longestWaitMs = 60_000

function waitOf(ms: number | undefined): PlaneRefusal['details'] {
  return ms === undefined || !(ms >= 0) ? {} : { retry_after_ms: Math.min(longestWaitMs, ms) }
}

function secondsOf({ headers }: Response): number | undefined {
  const seconds = Number(headers.get('retry-after') ?? Number.NaN)
  return Number.isFinite(seconds) ? seconds * 1000 : undefined
}
