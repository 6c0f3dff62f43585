/** Answers requests that come all the time without the router and its middleware, which take as long as everything else about an answer. */

import type { RouteConfig, z } from '@hono/zod-openapi'
import { type Api, type ApiEnv, badRequest, type Guard, guarding, json, knownSender, type RequestParts, securityOf } from './api.ts'
import type { Identity } from './callers.ts'
import { quiet } from './http-error.ts'

type Env<Caller extends Identity> = ApiEnv<Caller>['Bindings']

export type QuickAsked<Caller extends Identity> = Pick<RequestParts, 'header'> & { readonly caller: Caller; readonly env: Env<Caller> }

export type QuickAnswer = {
  readonly status: number
  /** Sent as JSON. */
  readonly body?: object
  readonly headers?: Readonly<Record<string, string>>
}

/** A POST of JSON to a path without parameters. */
export type QuickRoute<Caller extends Identity, Body> = {
  readonly config: Omit<RouteConfig, 'method' | 'request'>
  readonly guard: Guard<Caller>
  readonly body: z.ZodType<Body>
  /** Describes the body in the description of the API. */
  readonly asks: string
  readonly answer: (body: Body, asked: QuickAsked<Caller>) => Promise<QuickAnswer>
}

export type QuickRoutes<Caller extends Identity> = {
  add<Body>(route: QuickRoute<Caller, Body>): void
  /** @returns undefined when the router must answer it */
  answer(request: Request, env: Env<Caller>): Promise<Response> | undefined
}

type Respond<Caller extends Identity> = (asked: QuickAsked<Caller>) => Promise<Response>

/** @param failure answers with what a route threw */
export function createQuickRoutes<Caller extends Identity>(
  app: Api<Caller>,
  failure: (error: unknown, path: string) => Response,
): QuickRoutes<Caller> {
  const routes = new Map<string, { readonly guard: Guard<Caller>; readonly respond: Respond<Caller> }>()

  async function guarded(guard: Guard<Caller>, respond: Respond<Caller>, { request, env }: RoutedRequest<Caller>): Promise<Response> {
    const asked = { param: () => undefined, header: (name: string) => request.headers.get(name) ?? undefined }
    try {
      const { caller } = await knownSender<Caller>(env)
      guard.permit(caller, asked)
      return await respond({ header: asked.header, caller, env })
    } catch (error) {
      return failure(error, env.path)
    }
  }

  return {
    add(route) {
      const { config, guard } = route
      const respond = responding(route)
      routes.set(config.path, { guard, respond })
      app.openAPIRegistry.registerPath({
        ...{ ...config, method: 'post', security: securityOf(guard) },
        request: { body: json(route.body, route.asks) },
      })
      app.post(config.path, guarding(guard), (c) => respond({ caller: c.var.caller, env: c.env, header: (name) => c.req.header(name) }))
    },
    answer(request, env) {
      const route = request.method === 'POST' ? routes.get(env.path) : undefined
      if (!route) return undefined
      // The middleware gives the stored answers to repeated requests.
      if (route.guard.replay !== 'never' && request.headers.has('idempotency-key')) return undefined
      return guarded(route.guard, route.respond, { request, env })
    },
  }
}

const ofJson = { 'content-type': 'application/json', ...quiet }

type RoutedRequest<Caller extends Identity> = { readonly request: Request; readonly env: Env<Caller> }

function responding<Caller extends Identity, Body>({ body: shape, answer }: QuickRoute<Caller, Body>): Respond<Caller> {
  // A Response copies these three times faster than a plain object.
  const usual = new Headers(ofJson)
  return async (asked) => {
    const read = shape.safeParse(asked.env.json)
    if (!read.success) throw badRequest(read.error.issues)
    const { status, body, headers } = await answer(read.data, asked)
    if (body === undefined) return new Response(null, { status, headers: { ...quiet, ...headers } })
    return new Response(JSON.stringify(body), { status, headers: headers ? { ...ofJson, ...headers } : usual })
  }
}
