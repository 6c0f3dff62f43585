/** Builds a JSON API: each route is declared with its schema and the scope it needs, and every failure has one shape. */

import { createRoute, OpenAPIHono, type RouteConfig, z } from '@hono/zod-openapi'
import type { Context, MiddlewareHandler } from 'hono'
import { HTTPException } from 'hono/http-exception'
import { causeOf } from '../kit/errors.ts'
import { sha256 } from '../kit/sha256.ts'
import { type Identity, type ScopedIdentity, type Sender, unauthorized } from './callers.ts'
import { errorResponse, HttpError, quiet } from './http-error.ts'
import type { Idempotency } from './idempotency.ts'
import type { Connection } from './listen.ts'

export type ApiEnv<Caller extends Identity> = {
  Bindings: {
    readonly connection: Connection
    /** Returns who sent it; undefined when it carries no secret. @throws HttpError 401 for a wrong secret */
    readonly sender: () => Promise<Sender<Caller> | undefined>
    /** Tells whether the secret of this request is still in force. */
    readonly isInForce: () => Promise<boolean>
    /** Says how one gets a token. */
    readonly tokenHint: string
    /** The body as it was sent; empty when there is none. */
    readonly body: string
    /** The parsed body. */
    readonly json: unknown
    /** The path as it is written in the request, without the query. */
    readonly path: string
    readonly idempotency: Idempotency
    /** The name of the cookie of a session. */
    readonly cookie: string
    /** Tries a secret that the body holds. @throws HttpError 429 when this address tried too many wrong ones */
    readonly attempt: <T>(find: () => T | undefined | Promise<T | undefined>) => Promise<T | undefined>
  }
  Variables: { caller: Caller }
}

export type Api<Caller extends Identity> = OpenAPIHono<ApiEnv<Caller>>

type ApiOptions = {
  /** Turns what a route threw into an answer; undefined for a bug. */
  readonly errorOf: (error: unknown) => HttpError | undefined
  readonly failed: (error: unknown) => void
  /** Fields that the errors below some path have besides code and message. */
  readonly errorFields?: (path: string, error: HttpError) => object
}

/** Answers with what a route threw. */
export function createFailures({ errorOf, failed, errorFields = () => ({}) }: ApiOptions): (error: unknown, path: string) => Response {
  return (thrown, path) => {
    const error = causeOf(thrown)
    const known = error instanceof HttpError ? error : error instanceof HTTPException ? ofHono(error) : errorOf(error)
    if (!known) failed(error)
    const answered = known ?? new HttpError(500, 'internal', 'this is a bug in BraidClaw; its log says more')
    return errorResponse(answered, errorFields(path, answered))
  }
}

export function createApi<Caller extends Identity>(options: ApiOptions): Api<Caller> {
  const app: Api<Caller> = new OpenAPIHono<ApiEnv<Caller>>({
    defaultHook(result) {
      if (!result.success) throw badRequest(result.error.issues)
    },
  })
  const failure = createFailures(options)
  const answer = (context: Context, error: HttpError) => failure(error, context.req.path)
  app.onError((error, context) => failure(error, context.req.path))
  app.notFound((context) => {
    const methods = methodsOf(app, context.req.path)
    if (methods.length === 0) return answer(context, new HttpError(404, 'not_found', `unknown path ${context.req.path}; see /openapi.json`))
    return answer(
      context,
      new HttpError(405, 'wrong_method', `${context.req.path} takes ${methods.join(' and ')}`, { allow: methods.join(', ') }),
    )
  })
  app.use(async (context, next) => {
    const { body } = context.env
    if (body !== '') Object.assign(context.req.bodyCache, { text: Promise.resolve(body) })
    await next()
    for (const [name, value] of Object.entries(quiet)) if (!context.res.headers.has(name)) context.res.headers.set(name, value)
  })
  return app
}

/** The scope of routes that any token may use. */
export const anyScope = ''

/** Declares a route that only callers with this scope may use. */
export function route<const R extends RouteConfig>(scope: string, config: R) {
  return guardedRoute(config, inScope(scope))
}

/** Lets callers with this scope pass. */
export function inScope(scope: string): Guard<ScopedIdentity> {
  return { words: [scope], permit: hasScope(scope) }
}

/** Declares a route for everybody. */
export function openRoute<const R extends RouteConfig>(config: R) {
  return createRoute({ ...config, security: [] })
}

/** The parts of a request that a guard may look at. */
export type RequestParts = { param(name: string): string | undefined; header(name: string): string | undefined }

export type Guard<Caller extends Identity> = {
  /** The words that /openapi.json says a token needs. */
  readonly words: readonly string[]
  /** @throws HttpError 403 when this caller may not do it */
  readonly permit: (caller: Caller, asked: RequestParts) => void
  /** Tells whether a repeated request gets the first answer: absent, when it has an Idempotency-Key; "never" for a route that sees to that itself. */
  readonly replay?: 'never'
}

/** Declares a route for those callers that `permit` lets pass. */
export function guardedRoute<const R extends RouteConfig, Caller extends Identity>(config: R, guard: Guard<Caller>) {
  return createRoute({ ...config, security: securityOf(guard), middleware: guarding(guard) })
}

/** The same type with readonly members. */
type ReadonlyJson<T> = T extends readonly (infer Item)[]
  ? readonly ReadonlyJson<Item>[]
  : T extends object
    ? { readonly [N in keyof T]: ReadonlyJson<T[N]> }
    : T

/** A route that answers as JSON what one call returns. */
export type JsonRoute<Caller extends Identity, P extends z.ZodObject, Q extends z.ZodObject, B extends z.ZodType, S extends z.ZodType> = {
  readonly summary: string
  readonly params?: P
  readonly query?: Q
  /** The shape of the body, and a sentence about it. */
  readonly body?: readonly [B, string]
  /** The shape of the answer, and a sentence about it. */
  readonly gives: readonly [S, string]
  /** Default: 200. */
  readonly status?: 201 | 202
  /** Says for other statuses what they mean. */
  readonly others?: { readonly [status: number]: string }
  readonly answer: (asked: {
    readonly caller: Caller
    readonly params: z.output<P>
    readonly query: z.output<Q>
    readonly body: z.output<B>
    /** The query as it was sent. */
    readonly spelled: () => Record<string, string>
    readonly env: ApiEnv<Caller>['Bindings']
    /** Aborts when the client has left. */
    readonly signal: AbortSignal
  }) => Promise<ReadonlyJson<z.input<S>>>
}

export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete'

/** Adds a route that answers as JSON what one call returns, to callers whom the guard lets pass. `at` is its method and path. */
export function addJsonRoute<
  Caller extends Identity,
  P extends z.ZodObject,
  Q extends z.ZodObject,
  B extends z.ZodType,
  S extends z.ZodType,
>(
  app: Api<Caller>,
  guard: Guard<Caller>,
  at: `${Method} /${string}`,
  { summary, params, query, body, gives, status, others = {}, answer }: JsonRoute<Caller, P, Q, B, S>,
): void {
  const [method, path] = at.split(' ') as [Method, string]
  const request = { ...(params ? { params } : {}), ...(query ? { query } : {}), ...(body ? { body: json(...body) } : {}) }
  const described = Object.entries(others).map(([status, description]) => [status, { description }])
  const responses = { [status ?? 200]: json(...gives), ...Object.fromEntries(described) }
  const config: RouteConfig = { method, path, summary, request, responses }
  app.openapi(guardedRoute(config, guard), async (c) => {
    const valid = (target: string) => c.req.valid(target as never)
    const { env, req } = c
    const asked = { caller: c.var.caller, params: valid('param'), query: valid('query'), body: valid('json'), env, signal: req.raw.signal }
    return c.json(plain(await answer({ ...asked, spelled: () => c.req.query() })), status ?? 200)
  })
}

export function securityOf<Caller extends Identity>({ words }: Guard<Caller>) {
  return [{ bearer: [...words] }]
}

/** @throws HttpError 401 */
export async function knownSender<Caller extends Identity>({ sender, tokenHint }: ApiEnv<Caller>['Bindings']): Promise<Sender<Caller>> {
  const known = await sender()
  if (!known) throw unauthorized(`this needs a token: send Authorization: Bearer TOKEN (${tokenHint})`)
  return known
}

export function guarding<Caller extends Identity>({ permit, replay }: Guard<Caller>): MiddlewareHandler<ApiEnv<Caller>> {
  return async (context, next) => {
    const sender = await knownSender<Caller>(context.env)
    permit(sender.caller, context.req)
    context.set('caller', sender.caller)
    if (context.req.method === 'GET' || replay === 'never') return next()
    const { body, idempotency, connection } = context.env
    return idempotency.answer(context, {
      owner: sender.key,
      digest: () => requestDigest(context.req, body),
      record: (recorder) => {
        connection.recorder = recorder
      },
      next,
    })
  }
}

/** The SHA-256 of what a request asks for. */
export function requestDigest({ method, path }: { readonly method: string; readonly path: string }, body: string): string {
  return sha256(`${method} ${path}\n${body}`)
}

function hasScope(scope: string) {
  return ({ scopes }: ScopedIdentity): void => {
    if (scope === anyScope || scopes.includes(scope) || scopes.includes('admin')) return
    const has = scopes.join(', ') || 'none'
    throw new HttpError(403, 'forbidden', `this token may not do that: it needs the scope "${scope}" and has ${has}`)
  }
}

/** The status codes of Hono's own failures are right; their texts are not JSON. */
function ofHono({ status, message }: HTTPException): HttpError {
  return new HttpError(status, status === 415 ? 'not_json' : 'bad_request', message || 'the request is not right')
}

type Issue = { readonly path: readonly PropertyKey[]; readonly message: string }

export function badRequest(issues: readonly Issue[]): HttpError {
  const problems = issues.map(({ path, message }) => `${path.map(String).join('.') || 'the body'}: ${message}`)
  return new HttpError(400, 'bad_request', problems.join('; '))
}

function methodsOf<Caller extends Identity>(app: Api<Caller>, path: string): string[] {
  const isThere = (method: string) => app.router.match(method, path)[0].some(([[, { method: own }]]) => own === method)
  return ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].filter(isThere)
}

/** Describes an answer or a body of JSON. */
export function json<S extends z.ZodType>(schema: S, description: string) {
  return { description, content: { 'application/json': { schema } } }
}

/** The route on which a server describes itself. */
export const documentRoute = {
  method: 'get',
  path: '/openapi.json',
  summary: 'This API, described',
  responses: { 200: json(z.looseObject({}), 'An OpenAPI 3.1 document') },
} as const

/** Describes all routes that were added so far. */
export function documentOf<Caller extends Identity>(app: Api<Caller>, info: { title: string; version: string; description: string }) {
  app.openAPIRegistry.registerComponent('securitySchemes', 'bearer', { type: 'http', scheme: 'bearer' })
  return app.getOpenAPI31Document({ openapi: '3.1.0', info })
}

/** The content of a stream of server-sent events. */
export const eventStream = { 'text/event-stream': { schema: z.string() } }

/** Describes the limit of a list, in a query. */
export function count(most: number) {
  return z.optional(z.coerce.number().pipe(z.int().min(1).max(most)))
}

type Plain<T> = T extends readonly (infer Item)[] ? Plain<Item>[] : T extends object ? { -readonly [Name in keyof T]: Plain<T[Name]> } : T

/** Returns the same value under a type that the route's schema accepts: what is sent as JSON is a copy that nobody changes. */
export function plain<T>(value: T): Plain<T> {
  return value as Plain<T>
}
