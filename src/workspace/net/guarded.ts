/** Fetches URLs for tools, MCP and webhooks: judges every hop and every address, and connects only to judged addresses. */

import type { IncomingMessage, RequestOptions } from 'node:http'
import type { Transform } from 'node:stream'
import { atEnd, attempt, errnoOf } from '../../kit/errors.ts'
import {
  explain,
  type Headers,
  type JudgeAddress,
  type JudgeUrl,
  type NetRefusal,
  type Outgoing,
  pin,
  type Resolve,
  systemResolve,
} from './pin.ts'
import { follow, isRedirect } from './redirect.ts'

const maxRedirects = 5

export type GuardOptions = {
  readonly judgeUrl: JudgeUrl
  readonly judgeAddress: JudgeAddress
  readonly resolve?: Resolve
  /** Limit of the decompressed body; a longer body is cut and marked as truncated. */
  readonly maxBytes: number
  /** The body has one character for each byte. */
  readonly binary?: true
  /** Counts from the first look-up to the last byte, with all redirects. */
  readonly timeoutMs: number
}

export type FetchOptions = {
  readonly method?: string
  readonly headers?: Headers
  readonly body?: string | undefined
  readonly signal?: AbortSignal
  /** False: a redirect is the answer. */
  readonly follow?: boolean
}

/** `url` is where the response came from, after redirects. `headers` have lower-case names; repeated headers are joined with ", ", cookies with a
 * line break. */
export type Fetched = {
  readonly ok: true
  readonly url: string
  readonly status: number
  readonly headers: Headers
  readonly body: string
  readonly bytes: number
  readonly truncated: boolean
}

/** Never rejects. */
export type GuardedFetch = { get(url: string, options?: FetchOptions): Promise<Fetched | NetRefusal> }

export function createGuardedFetch(options: GuardOptions): GuardedFetch {
  return {
    async get(url, request = {}) {
      const timeout = AbortSignal.timeout(options.timeoutMs)
      const signal = request.signal === undefined ? timeout : AbortSignal.any([request.signal, timeout])
      try {
        const arrived = await travel({ ...options, signal }, url, request)
        return arrived.ok ? await finished({ ...options, signal }, arrived) : arrived
      } catch (error) {
        if (request.signal?.aborted) return { ok: false, message: 'the request was cancelled' }
        if (timeout.aborted)
          return { ok: false, message: `${JSON.stringify(url)} gave no complete answer within ${options.timeoutMs / 1000} s` }
        return { ok: false, message: `${JSON.stringify(url)}: ${explain(error)}` }
      }
    },
  }
}

/**
 * Returns a standard fetch whose answers stream, for protocols that need one. It judges as the other does, and limits neither time nor
 * length; its signal ends it. Rejects with the sentence of a refusal.
 */
export function createStreamingFetch(options: Omit<GuardOptions, 'maxBytes' | 'timeoutMs' | 'binary'>): typeof fetch {
  const send = async (input: string | URL | Request, init: RequestInit = {}) => {
    const request = input instanceof Request ? new Request(input, init) : new Request(String(input), init)
    const { url, method, signal } = request
    const body = method === 'GET' || method === 'HEAD' ? undefined : await request.text()
    const headers = { ...Object.fromEntries(request.headers), 'accept-encoding': 'identity' }
    const arrived = await travel({ ...options, signal }, url, { method, headers, body, follow: init.redirect !== 'manual' })
    if (!arrived.ok) throw new TypeError(arrived.message)
    return streamed(arrived.head, signal)
  }
  return Object.assign(send, { preconnect: fetch.preconnect })
}

async function streamed(head: IncomingMessage, signal: AbortSignal): Promise<Response> {
  const stop = () => head.destroy(signal.reason)
  signal.addEventListener('abort', stop, { once: true })
  head.on('close', () => signal.removeEventListener('abort', stop))
  const chunks = (await decompressed(head, Number.POSITIVE_INFINITY))[Symbol.asyncIterator]()
  const status = head.statusCode ?? 0
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await chunks.next()
      if (done) controller.close()
      else controller.enqueue(value)
    },
    cancel: () => void head.destroy(),
  })
  const headers = new Headers()
  for (const [name, value] of Object.entries(head.headers)) for (const one of [value ?? []].flat()) headers.append(name, one)
  const isEmpty = status === 204 || status === 205 || status === 304
  if (isEmpty) head.resume()
  return new Response(isEmpty ? null : body, { status, headers })
}

type Journey = Omit<GuardOptions, 'maxBytes' | 'timeoutMs'> & { readonly signal: AbortSignal }
type Arrived = { readonly ok: true; readonly outgoing: Outgoing; readonly head: IncomingMessage }

async function travel(
  journey: Journey,
  text: string,
  { method = 'GET', headers = {}, body, follow: goes = true }: FetchOptions,
): Promise<Arrived | NetRefusal> {
  const url = URL.parse(text)
  if (url === null)
    return { ok: false, denied: 'url.invalid', message: `${JSON.stringify(text)} is not an absolute URL; write it as https://host/path` }
  // The gate gets the text as given, because it must refuse what the parser would repair.
  let outgoing: Outgoing = { url, method: method.toUpperCase(), headers: clean(headers), body }
  let spelling = text
  for (let hop = 0; hop <= maxRedirects; hop++) {
    const answer = await exchange(journey, outgoing, spelling)
    if (!answer.ok) return answer
    const { head } = answer
    const { location } = head.headers
    if (!goes || !isRedirect(head.statusCode ?? 0) || location === undefined) return { ok: true, outgoing, head }
    head.destroy()
    const hopping = follow({ from: outgoing, status: head.statusCode ?? 0, location })
    if (!hopping.ok) return hopping
    outgoing = hopping.next
    spelling = outgoing.url.href
  }
  return { ok: false, message: `${JSON.stringify(text)} redirects more than ${maxRedirects} times` }
}

/** These headers belong to the connection; set by a caller, they could smuggle a second request or name another host. */
const connectionHeaders = /^(host|connection|content-length|transfer-encoding|upgrade|te|trailer|expect|keep-alive|proxy-.*)$/

function clean(headers: Headers): Headers {
  const given = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const)
  const defaults = { accept: '*/*', 'accept-encoding': 'gzip, br', 'user-agent': 'braidclaw' }
  return { ...defaults, ...Object.fromEntries(given.filter(([name]) => !connectionHeaders.test(name))) }
}

async function exchange(journey: Journey, outgoing: Outgoing, spelling: string): Promise<{ ok: true; head: IncomingMessage } | NetRefusal> {
  const verdict = shape(outgoing.url) ?? journey.judgeUrl({ url: spelling, method: outgoing.method })
  if (!verdict.ok) return { ok: false, denied: verdict.rule, message: verdict.reason }
  const { judgeAddress, resolve = systemResolve, signal } = journey
  const pinned = await pin({ url: outgoing.url, judgeAddress, resolve, signal })
  if (!pinned.ok) return pinned
  return { ok: true, head: await reach(outgoing, pinned.ips, signal) }
}

/** Checks the URL independently of the gate that was passed in. */
function shape(url: URL): { readonly ok: false; readonly rule: string; readonly reason: string } | undefined {
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    return { ok: false, rule: 'url.scheme', reason: `${url.protocol} is not fetched, only http: and https:` }
  if (url.username !== '' || url.password !== '')
    return { ok: false, rule: 'url.userinfo', reason: `the URL for ${url.host} carries a user name or password; remove it` }
}

async function reach(outgoing: Outgoing, ips: readonly string[], signal: AbortSignal): Promise<IncomingMessage> {
  let trouble: unknown
  for (const ip of ips) {
    try {
      return await connect(outgoing, ip, signal)
    } catch (error) {
      if (!isUnreachable(error)) throw error
      trouble = error
    }
  }
  throw trouble
}

async function finished({ maxBytes, signal, binary }: GuardOptions & Journey, { outgoing: { url }, head }: Arrived): Promise<Fetched> {
  const { text, bytes, truncated } = await readBody(head, maxBytes, signal, binary)
  const entries = Object.entries(head.headers).map(([name, value]) => [name, Array.isArray(value) ? value.join('\n') : (value ?? '')])
  return { ok: true, url: url.href, status: head.statusCode ?? 0, headers: Object.fromEntries(entries), body: text, bytes, truncated }
}

/**
 * Makes one HTTP exchange with one checked address. Uses node:http, because Bun's fetch resolves names itself and would ask a rebinding
 * server again. Resolves with the head of the response; the caller reads the body. Rejects with the system's error.
 */
async function connect(outgoing: Outgoing, ip: string, signal: AbortSignal): Promise<IncomingMessage> {
  const { request } = outgoing.url.protocol === 'https:' ? await import('node:https') : await import('node:http')
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  signal.throwIfAborted()
  const sent = request(outgoing.url, settings(outgoing, ip), resolve)
  const stop = () => sent.destroy(signal.reason)
  signal.addEventListener('abort', stop, { once: true })
  sent.on('close', () => signal.removeEventListener('abort', stop))
  // Also catches errors after the head, which the body's own error has already reported.
  sent.on('error', reject)
  // The request did not ask for an upgrade, and without a listener it would never settle.
  sent.on('upgrade', (_answer, socket) => {
    socket.destroy()
    reject(new Error('the server switched to another protocol'))
  })
  sent.end(outgoing.body)
  return promise
}

function settings({ method, headers, body }: Outgoing, ip: string): RequestOptions {
  const family = ip.includes(':') ? 6 : 4
  return {
    method,
    headers: body === undefined ? headers : { ...headers, 'content-length': String(new TextEncoder().encode(body).length) },
    // No agent: a kept-alive connection might lead to an address that was judged for another request.
    agent: false,
    maxHeaderSize: 32 * 1024,
    lookup: (_host, { all }, done) => (all ? done(null, [{ address: ip, family }]) : done(null, ip, family)),
  }
}

const unreachable = ['ECONNREFUSED', 'ENETUNREACH', 'EHOSTUNREACH', 'EADDRNOTAVAIL', 'EAFNOSUPPORT', 'ETIMEDOUT']

/** True when nothing was sent, so another address of the same host may be tried. */
function isUnreachable(error: unknown): boolean {
  return unreachable.includes(errnoOf(error) ?? '')
}

/** `bytes` counts the decompressed bytes in `text`; `truncated` when the limit cut the body. */
export type Body = { readonly text: string; readonly bytes: number; readonly truncated: boolean }

/**
 * Reads a response body: decompresses it, limits its bytes before and after decompression, and decodes it as text.
 * @throws on a broken connection, broken compression, an unknown content encoding, or abort
 */
export async function readBody(answer: IncomingMessage, maxBytes: number, signal: AbortSignal, binary = false): Promise<Body> {
  const stop = () => answer.destroy(signal.reason)
  signal.addEventListener('abort', stop, { once: true })
  using _end = atEnd(() => {
    signal.removeEventListener('abort', stop)
    answer.destroy()
  })
  signal.throwIfAborted()
  const { bytes, truncated } = await collect(await decompressed(answer, maxBytes), maxBytes)
  if (binary) return { text: Buffer.from(bytes).toString('latin1'), bytes: bytes.length, truncated }
  return { text: decoder(answer.headers['content-type']).decode(bytes, { stream: truncated }), bytes: bytes.length, truncated }
}

async function collect(source: AsyncIterable<Uint8Array>, maxBytes: number): Promise<{ bytes: Uint8Array; truncated: boolean }> {
  const parts: Uint8Array[] = []
  let room = maxBytes
  for await (const chunk of source) {
    parts.push(chunk.subarray(0, room))
    if (chunk.length > room) return { bytes: Buffer.concat(parts), truncated: true }
    room -= chunk.length
  }
  return { bytes: Buffer.concat(parts), truncated: false }
}

async function decompressed(answer: IncomingMessage, maxBytes: number): Promise<AsyncIterable<Uint8Array>> {
  const encoding = answer.headers['content-encoding']?.trim().toLowerCase() ?? 'identity'
  if (encoding === 'identity' || encoding === '') return answer
  const unpack = await unpacker(encoding)
  let wire = 0
  answer.on('data', (chunk: Uint8Array) => {
    wire += chunk.length
    // Endless input that decompresses to nothing would never reach the limit on the decompressed side.
    if (wire > maxBytes + 65_536) answer.destroy(new Error(`more than ${maxBytes} compressed bytes`))
  })
  answer.on('error', (error) => unpack.destroy(error))
  return answer.pipe(unpack)
}

async function unpacker(encoding: string): Promise<Transform> {
  const { createBrotliDecompress, createGunzip, createInflate } = await import('node:zlib')
  if (encoding === 'gzip' || encoding === 'x-gzip') return createGunzip()
  if (encoding === 'deflate') return createInflate()
  if (encoding === 'br') return createBrotliDecompress()
  throw new Error(`the content encoding ${JSON.stringify(encoding.slice(0, 40))} is not supported`)
}

/** A label that the runtime does not know, or none, means UTF-8; invalid bytes show as U+FFFD. */
function decoder(contentType: string | undefined): TextDecoder {
  const label = /charset\s*=\s*"?([\w-]+)/i.exec(contentType ?? '')?.[1] ?? 'utf-8'
  return attempt(() => new TextDecoder(label as Bun.Encoding)) ?? new TextDecoder()
}
