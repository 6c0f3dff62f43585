/** Declares routes of the control plane: below its prefix, for the callers that the table of permissions names. */

import type { RouteConfig, z } from '@hono/zod-openapi'
import { type Api, addJsonRoute, type Guard, guardedRoute, type JsonRoute, type Method, type RequestParts } from '../../http/api.ts'
import { HttpError } from '../../http/http-error.ts'
import { keyOf } from '../../http/idempotency.ts'
import type { QuickRoutes } from '../../http/quick-routes.ts'
import { type Caller, signatureOf } from '../contract/caller.ts'
import type { Plane } from '../contract/plane.ts'
import type { HostdProxy } from '../hostd/hostd-proxy.ts'
import type { Counters } from './counters.ts'
import { isOwn, type Permission, permissionScope, whoMay } from './who-may.ts'

export const prefix = '/api/controlplane'

/**
 * Decides about an Idempotency-Key: `kept`: the answer is stored and returned again; `itself`: the route handles the key; `secret`: the
 * answer has a secret, which is never stored, so a key is refused; `none`: the key has no meaning.
 */
type Replay = 'kept' | 'itself' | 'secret' | 'none'

export function controlRoute<const R extends RouteConfig>(config: R, replay: Replay = 'kept') {
  return guardedRoute(config, guardOf(rowName(config), replay))
}

/** Adds a route that returns the result of one call as JSON. `path` stands below the prefix. */
export function addRoute<P extends z.ZodObject, Q extends z.ZodObject, B extends z.ZodType, S extends z.ZodType>(
  app: ControlApi,
  method: Method,
  path: string,
  { replay = 'kept', ...row }: JsonRoute<Caller, P, Q, B, S> & { readonly replay?: Replay },
): void {
  const at = `${prefix}/${path.slice(1)}` as const
  addJsonRoute(app, guardOf(rowName({ method, path: at }), replay), `${method} ${at}`, row)
}

/** Returns the name of the route in the table of permissions. */
function rowName({ method, path }: Pick<RouteConfig, 'method' | 'path'>): string {
  return `${method.toUpperCase()} ${path.startsWith(`${prefix}/`) ? path.slice(prefix.length) : path.slice(1)}`
}

/** Checks the caller against the table of permissions. @throws Error when the table has no row for the route */
export function guardOf(name: string, replay: Replay): Guard<Caller> {
  const permission = whoMay[name]
  if (!permission) throw new Error(`${name} has no row in src/control/server/who-may.ts`)
  return {
    words: Object.keys(permission),
    replay: replay === 'kept' ? undefined : 'never',
    permit(caller, asked) {
      assertMay(caller, { name, permission, id: asked.param('id') })
      if (replay === 'secret') assertNoKey(asked)
    },
  }
}

type RouteAccess = { readonly name: string; readonly permission: Permission; readonly id: string | undefined }

/** @throws HttpError 403 */
function assertMay(caller: Caller, { name, permission, id }: RouteAccess): void {
  const reach = permissionScope(permission, caller.kind)
  if (reach === undefined)
    throw new HttpError(403, 'forbidden', `${name} is for ${Object.keys(permission).join(' and ')}; this is ${signatureOf(caller)}`)
  if (reach === 'own' && id !== undefined && !isOwn(caller, name, id))
    throw new HttpError(403, 'forbidden', `${JSON.stringify(id.slice(0, 80))} does not belong to ${signatureOf(caller)}`)
}

function assertNoKey(asked: RequestParts): void {
  if (keyOf(asked) === undefined) return
  throw new HttpError(400, 'bad_key', 'this answer holds a secret and is never kept: send the request without an Idempotency-Key')
}

export type ControlApi = Api<Caller>

export type ControlServer = {
  readonly plane: Plane
  readonly version: string
  /** Absent when this control plane has no hostd. */
  readonly hostd?: HostdProxy
  /** Aborts when the server begins to stop: waiting requests get an answer at once, streams end. */
  readonly stopping: AbortSignal
  /** Tells whether the server speaks HTTPS. */
  readonly secure: boolean
  readonly counters: Counters
  readonly now: () => number
  readonly log: (level: 'info' | 'warn' | 'error', event: string, fields?: object) => void
}

export type ControlRoutes = (app: ControlApi, server: ControlServer, quick: QuickRoutes<Caller>) => void
