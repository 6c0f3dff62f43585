/** Serves an API: each request passes the guards, says who sent it, and has its body read, before a route sees it. */

import { errorText, hasCode } from '../kit/errors.ts'
import type { ApiEnv } from './api.ts'
import { createIdentifier, type IdentifierOptions, type Identity } from './callers.ts'
import { errorResponse, HttpError, quiet } from './http-error.ts'
import type { Idempotency } from './idempotency.ts'
import { type BodyLimits, type JsonBody, readJsonBody } from './json-body.ts'
import { type Connection, type Listening, type ListenOptions, listen } from './listen.ts'

export type ServeApiOptions<Caller extends Identity> = Pick<
  ListenOptions,
  'hostname' | 'port' | 'tls' | 'failed' | 'maxRequests' | 'maxBodyBytes'
> &
  IdentifierOptions<Caller> & {
    /** Loads the routes: with the first request, or shortly after the start. */
    readonly app: () => Promise<Answering<Caller>>
    /** The answers to GET and HEAD requests that need neither a token nor the routes. */
    readonly simple: { readonly [path: string]: () => Response }
    /** Paths that are answered without the routes, for example an API of another vendor's form; only the guards come before. */
    readonly raw?: RawAnswers
    /** Names under which a proxy in front of this server is reached. */
    readonly proxies: readonly string[]
    /** The names of this machine, for a server that listens on all its addresses. */
    readonly names: readonly string[]
    readonly cookie: (port: number) => string
    /** Limits of a body by who sends it; then the caller is looked up before the body is read. Absent: the same limits for everybody. */
    readonly bodyLimits?: (path: string, isKnown: boolean) => BodyLimits
    readonly idempotency: Idempotency
    readonly errorFields: (path: string, error: HttpError) => object
    readonly hints: Hints
    /** Called with the status of each answer. */
    readonly answered?: (status: number) => void
  }

/** The routes; must not throw anything but bugs. */
export type Answering<Caller extends Identity> = { fetch(request: Request, env: ApiEnv<Caller>['Bindings']): Response | Promise<Response> }

export type RawAnswers = {
  takes(path: string): boolean
  /** Reads who sent it and its body itself. */
  answer(request: Request, connection: Connection): Promise<Response>
}

/** The parts of messages that say what to do. */
export type Hints = {
  /** How one gets a token. */
  readonly token: string
  /** How another name of this server is made known. */
  readonly host: string
}

/** Makes the answer of a simple path. */
export function simpleJson(value: object, status = 200): Response {
  return Response.json(value, { status, headers: quiet })
}

const jsonType = 'application/json'
const noBody: JsonBody = { text: '', value: undefined }

/** Loading the routes would delay the line that says that all is ready. */
const loadAfterMs = 100

/** @throws Error with an errno when it cannot listen there */
export function serveApi<Caller extends Identity>(options: ServeApiOptions<Caller>): Listening {
  const { app, failed, errorFields, hints, bodyLimits, answered = () => {} } = options
  const state = { places: placesOf({ names: [], port: options.port, secure: false }), cookie: '' }
  const identify = createIdentifier(options, () => state.cookie)

  async function answer(request: Request, connection: Connection): Promise<Response> {
    try {
      assertOurs(request, state.places, hints.host)
      const url = plainUrl(request.url)
      const path = pathIn(url)
      const simple = request.method === 'GET' || request.method === 'HEAD' ? simpleAnswer(options.simple, path) : undefined
      if (simple) return simple
      if (options.raw?.takes(path)) return await options.raw.answer(request, connection)
      const sender = identify.senderOf(request, connection)
      const limits = bodyLimits && hasBody(request) ? bodyLimits(path, (await sender()) !== undefined) : undefined
      const { text: body, value: json } = hasBody(request) ? await readJsonBody(request, limits) : noBody
      const env: ApiEnv<Caller>['Bindings'] = {
        ...{ connection, body, json, path, idempotency: options.idempotency, cookie: state.cookie, tokenHint: hints.token },
        sender,
        attempt: (find) => identify.attempt(find, connection),
        isInForce: () => identify.isInForce(request, connection),
      }
      return await (await app()).fetch(forRoutes(request, url, body), env)
    } catch (error) {
      if (!(error instanceof HttpError)) throw error
      return errorResponse(error, errorFields(pathOf(request.url), error))
    }
  }

  async function counted(request: Request, connection: Connection): Promise<Response> {
    const response = await answer(request, connection)
    answered(response.status)
    return response
  }

  const listening = listen({ ...options, answer: counted })
  state.places = placesOf({ names: options.names, port: listening.port, secure: options.tls !== undefined, proxies: options.proxies })
  state.cookie = options.cookie(listening.port)
  setTimeout(() => void app().catch(failed), loadAfterMs).unref()
  return listening
}

/** Answers what needs neither a token nor the routes. */
function simpleAnswer(simple: { readonly [path: string]: () => Response }, path: string): Response | undefined {
  return Object.hasOwn(simple, path) ? simple[path]?.() : undefined
}

/** Returns the path as the request spells it. */
function pathIn(url: string): string {
  return url.slice(url.indexOf('/', url.indexOf('://') + 3)).split(/[?#]/)[0] ?? ''
}

/** Looks at `body` only when it must: that makes a stream of it, which is slow to read. */
function hasBody(request: Request): boolean {
  const { method } = request
  return method !== 'GET' && method !== 'HEAD' && method !== 'OPTIONS' && (method !== 'DELETE' || request.body !== null)
}

/** The routes find the body in `env`. A copy of the request costs as much as the rest of it, so there is one only when something differs. */
function forRoutes(request: Request, url: string, body: string): Request {
  const isJson = body === '' || request.headers.get('content-type') === jsonType
  if (isJson && url === request.url) return request
  const headers = new Headers(request.headers)
  if (!isJson) headers.set('content-type', jsonType)
  return new Request(url, { method: request.method, headers, signal: request.signal })
}

function pathOf(url: string): string {
  return URL.canParse(url) ? new URL(url).pathname : ''
}

/** Says why a server cannot listen at an address. */
export function listenProblem(error: unknown): string {
  if (hasCode(error, 'EADDRINUSE')) return 'something listens there already; name another --port'
  if (hasCode(error, 'EACCES')) return 'this user may not use that port; name one above 1023'
  return errorText(error)
}

type Places = {
  /** The values of Host that are ours, in lower case, each with its port unless it is the usual one. */
  readonly hosts: ReadonlySet<string>
  /** The values of Origin that are ours. */
  readonly origins: ReadonlySet<string>
}

type PlaceOptions = {
  readonly names: readonly string[]
  readonly port: number
  readonly secure: boolean
  /** Names under which a proxy in front of this server is reached, with the port if people type one. */
  readonly proxies?: readonly string[]
}

/** Refuses requests that a foreign page, a rebound name or a confused proxy sends, before anything else looks at them. */
function placesOf({ names, port, secure, proxies = [] }: PlaceOptions): Places {
  const usual = secure ? 443 : 80
  const own = names.flatMap((name) => [...(port === usual ? [name] : []), `${name}:${port}`])
  const [scheme, others] = [secure ? 'https' : 'http', proxies.map((name) => name.toLowerCase())]
  return {
    hosts: new Set([...own, ...others]),
    origins: new Set([...own.map((host) => `${scheme}://${host}`), ...others.flatMap((host) => [`http://${host}`, `https://${host}`])]),
  }
}

/** @throws HttpError for a request that is not meant for this server, or that a page of another site sent */
function assertOurs({ headers, url }: Pick<Request, 'headers' | 'url'>, { hosts, origins }: Places, hint: string): void {
  const host = headers.get('host')
  // Without a host Bun leaves only the path in the url.
  if (host === null || host === '' || !/^https?:/.test(url))
    throw new HttpError(400, 'no_host', 'the request names no host: send HTTP/1.1 with exactly one Host header')
  if (!hosts.has(host.toLowerCase()))
    throw new HttpError(
      403,
      'foreign_host',
      `the host ${JSON.stringify(host.slice(0, 100))} is not one of this server; use ${[...hosts][0]}, or ${hint}`,
    )
  const origin = headers.get('origin')
  if (origin !== null && !origins.has(origin.toLowerCase()))
    throw new HttpError(403, 'foreign_origin', `pages of ${JSON.stringify(origin.slice(0, 100))} may not talk to this server`)
  const site = headers.get('sec-fetch-site')
  if (site === 'cross-site' || site === 'same-site')
    throw new HttpError(403, 'foreign_origin', 'pages of other sites may not talk to this server')
}

/**
 * Returns the URL with its escaped slashes unescaped: an id may contain one. @throws HttpError for a path with parts that some programs
 * read in another way than others
 */
function plainUrl(url: string): string {
  if (/%00/.test(url)) throw new HttpError(400, 'bad_path', 'the URL has a NUL character; take it out')
  const path = url.slice(url.indexOf('/', url.indexOf('://') + 3)).split(/[?#]/)[0] ?? ''
  if (/%2e|%5c|\\|\/\/|[^\x21-\x7e]/i.test(path))
    throw new HttpError(400, 'bad_path', 'the path has an escaped or doubled separator; write it without')
  if (!/%2f/i.test(path)) return url
  const unescaped = path.replace(/%2f/gi, '/')
  if (/\/\.{1,2}(?:\/|$)/.test(unescaped))
    throw new HttpError(400, 'bad_path', 'the path leads elsewhere once its separators are unescaped; write it without "." and ".."')
  return url.replace(path, unescaped)
}
