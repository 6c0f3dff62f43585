/** Serves an API: each request passes the guards, says who sent it, and has its body read, before a route sees it. */

import type { Clock } from '../runtime/port.ts'
import type { Api, ApiEnv, Identity } from './api.ts'
import { type Credential, credentialOf, unauthorized } from './credentials.ts'
import { assertOurs, placesOf, plainUrl } from './guards.ts'
import { errorResponse, HttpError, quiet } from './http-error.ts'
import type { Idempotency } from './idempotency.ts'
import { readJsonBody } from './json-body.ts'
import { type Connection, type Listening, type ListenOptions, listen } from './listen.ts'
import { createRateLimit } from './rate-limit.ts'

export type ServeApiOptions<Caller extends Identity> = Pick<ListenOptions, 'hostname' | 'port' | 'tls'> & {
  /** Loads the routes: with the first request, or shortly after the start. */
  readonly app: () => Promise<Api<Caller>>
  /** The answers to GET requests that need neither a token nor the routes. */
  readonly simple: { readonly [path: string]: object }
  /** Names under which a proxy in front of this server is reached. */
  readonly proxies: readonly string[]
  /** The names of this machine, for a server that listens on all its addresses. */
  readonly names: readonly string[]
  readonly cookie: (port: number) => string
  /** @returns undefined for a secret that nobody has */
  readonly callerOf: (credential: Credential) => Caller | undefined
  readonly idempotency: Idempotency
  readonly errorFields: (path: string, error: HttpError) => object
  readonly failed: (error: unknown) => void
  readonly now: Clock
}

/** Loading the routes would delay the line that says that all is ready. */
const loadAfterMs = 100

/** @throws Error with an errno when it cannot listen there */
export function serveApi<Caller extends Identity>(options: ServeApiOptions<Caller>): Listening {
  const { app, hostname, port, tls, failed, errorFields } = options
  const state = { places: placesOf({ names: [], port, secure: false }), cookie: '' }
  const identify = identifier(options, () => state.cookie)

  async function answer(request: Request, connection: Connection): Promise<Response> {
    try {
      assertOurs(request, state.places)
      const url = plainUrl(request.url)
      const simple = request.method === 'GET' ? simpleAnswer(options.simple, url) : undefined
      if (simple) return simple
      const [read, body] = hasBody(request) ? await withBody(request, url) : [url === request.url ? request : new Request(url, request), '']
      const env: ApiEnv<Caller>['Bindings'] = {
        ...{ connection, body, idempotency: options.idempotency, cookie: state.cookie },
        caller: () => identify.caller(request, connection),
        attempt: (find) => identify.attempt(find, connection),
      }
      return await (await app()).fetch(read, env)
    } catch (error) {
      if (!(error instanceof HttpError)) throw error
      return errorResponse(error, errorFields(pathOf(request.url), error))
    }
  }

  const listening = listen({ hostname, port, ...(tls ? { tls } : {}), answer, failed })
  state.places = placesOf({ names: options.names, port: listening.port, secure: tls !== undefined, proxies: options.proxies })
  state.cookie = options.cookie(listening.port)
  setTimeout(() => void app().catch(failed), loadAfterMs).unref()
  return listening
}

/** How often one address may send a wrong secret, and how often one caller may send anything. */
const wrongSecrets = { perSecond: 5, burst: 50 }
const requests = { perSecond: 1_000, burst: 4_000 }

function identifier<Caller extends Identity>({ callerOf, now }: ServeApiOptions<Caller>, cookie: () => string) {
  const [wrong, each] = [createRateLimit({ ...wrongSecrets, now }), createRateLimit({ ...requests, now })]

  function tooMany(seconds: number): HttpError {
    return new HttpError(429, 'too_many_requests', `too many requests; try again in ${seconds} s`, { 'retry-after': String(seconds) })
  }

  /** A wrong secret counts against the address, so that nobody can try many; a right one is never refused for that. */
  function attempt<T>(find: () => T | undefined, { address }: Connection): T | undefined {
    const found = find()
    const wait = found === undefined ? wrong.take(address) : undefined
    if (wait !== undefined) throw tooMany(wait)
    return found
  }

  function caller({ headers, method }: Request, connection: Connection): Caller | undefined {
    const credential = credentialOf(headers, cookie())
    if (!credential) return undefined
    const caller = attempt(() => callerOf(credential), connection)
    if (!caller) throw unauthorized(credential.kind === 'cookie' ? 'the session has ended; log in again' : 'this token is not in force')
    const wait = each.take(caller.id)
    if (wait !== undefined) throw tooMany(wait)
    if (credential.kind === 'cookie' && method !== 'GET' && method !== 'HEAD' && headers.get('origin') === null)
      throw new HttpError(403, 'foreign_origin', 'a session may change something only from its own page: the request has no Origin')
    return caller
  }

  return { caller, attempt }
}

/** Answers what needs neither a token nor the routes. */
function simpleAnswer(simple: { readonly [path: string]: object }, url: string): Response | undefined {
  const [path = ''] = url.slice(url.indexOf('/', url.indexOf('://') + 3)).split(/[?#]/)
  return Object.hasOwn(simple, path) ? Response.json(simple[path], { headers: quiet }) : undefined
}

function hasBody({ method, body }: Request): boolean {
  return method !== 'GET' && method !== 'HEAD' && method !== 'OPTIONS' && (body !== null || method !== 'DELETE')
}

async function withBody(request: Request, url: string): Promise<readonly [Request, string]> {
  const body = await readJsonBody(request)
  const headers = new Headers(request.headers)
  headers.set('content-type', 'application/json')
  return [new Request(url, { method: request.method, headers, body }), body]
}

function pathOf(url: string): string {
  return URL.canParse(url) ? new URL(url).pathname : ''
}
