/** Declares a route of the control plane: below its prefix, for the callers that the table of permissions names. */

import type { RouteConfig, z } from '@hono/zod-openapi'
import { type Api, type Asked, addJsonRoute, type Guard, guardedRoute, type JsonRoute, type Method } from '../../http/api.ts'
import { HttpError } from '../../http/http-error.ts'
import { keyOf } from '../../http/idempotency.ts'
import type { QuickRoutes } from '../../http/quick-routes.ts'
import { type Caller, signatureOf } from '../contract/caller.ts'
import type { Plane } from '../contract/plane.ts'
import type { HostdProxy } from '../hostd/hostd-proxy.ts'
import type { Counters } from './counters.ts'
import { isOwn, type Permission, reachOf, whoMay } from './who-may.ts'

export const prefix = '/api/controlplane'

/**
 * Says what becomes of an Idempotency-Key: `kept`: the answer is kept and given again; `itself`: the route sees to it; `secret`: the answer holds
 * a secret, which is never kept, so a key is refused; `none`: it has no meaning there.
 */
type Replay = 'kept' | 'itself' | 'secret' | 'none'

export function controlRoute<const R extends RouteConfig>(config: R, replay: Replay = 'kept') {
  return guardedRoute(config, guardOf(rowName(config), replay))
}

/** Adds a route that answers as JSON what one call returns. `path` stands below the prefix. */
export function addRoute<P extends z.ZodObject, Q extends z.ZodObject, B extends z.ZodType, S extends z.ZodType>(
  app: ControlApi,
  method: Method,
  path: string,
  { replay = 'kept', ...row }: JsonRoute<Caller, P, Q, B, S> & { readonly replay?: Replay },
): void {
  const at = `${prefix}/${path.slice(1)}` as const
  addJsonRoute(app, guardOf(rowName({ method, path: at }), replay), `${method} ${at}`, row)
}

/** As the table of permissions names it. */
function rowName({ method, path }: Pick<RouteConfig, 'method' | 'path'>): string {
  return `${method.toUpperCase()} ${path.startsWith(`${prefix}/`) ? path.slice(prefix.length) : path.slice(1)}`
}

/** @throws Error when the table of permissions has no row for it */
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

type Wanted = { readonly name: string; readonly permission: Permission; readonly id: string | undefined }

/** @throws HttpError 403 */
function assertMay(caller: Caller, { name, permission, id }: Wanted): void {
  const reach = reachOf(permission, caller.kind)
  if (reach === undefined)
    throw new HttpError(403, 'forbidden', `${name} is for ${Object.keys(permission).join(' and ')}; this is ${signatureOf(caller)}`)
  if (reach === 'own' && id !== undefined && !isOwn(caller, name, id))
    throw new HttpError(403, 'forbidden', `${JSON.stringify(id.slice(0, 80))} does not belong to ${signatureOf(caller)}`)
}

function assertNoKey(asked: Asked): void {
  if (keyOf(asked) === undefined) return
  throw new HttpError(400, 'bad_key', 'this answer holds a secret and is never kept: send the request without an Idempotency-Key')
}

export type ControlApi = Api<Caller>

/** Holds what the routes of the control plane share. */
export type ControlServer = {
  readonly plane: Plane
  readonly version: string
  /** Absent: this control plane has no hostd. */
  readonly hostd?: HostdProxy
  /** Aborted when the server begins to stop: what waits answers at once, streams end. */
  readonly stopping: AbortSignal
  /** Whether it speaks HTTPS. */
  readonly secure: boolean
  readonly counters: Counters
  readonly now: () => number
  readonly log: (level: 'info' | 'warn' | 'error', event: string, fields?: object) => void
}

/** Adds some routes. */
export type ControlRoutes = (app: ControlApi, server: ControlServer, quick: QuickRoutes<Caller>) => void
