/** Begins and ends the session of a browser: POST, GET and DELETE /session. */

import { z } from '@hono/zod-openapi'
import { json } from '../../../http/answers/shapes.ts'
import { addJsonRoute, anyScope, inScope, openRoute } from '../../../http/api.ts'
import { unauthorized } from '../../../http/callers/credentials.ts'
import { beginSession, endSession, sessionSeconds } from '../../../http/callers/session-cookie.ts'
import type { Gateway, GatewayApi } from '../gateway.ts'

const who = z.object({ name: z.string(), scopes: z.array(z.string()) })
const begun = z.object({ ...who.shape, expires: z.int().openapi({ description: 'Milliseconds since 1970' }) })
const ended = z.object({ ended: z.literal(true) })

export function sessionRoutes(app: GatewayApi, { holders, secure }: Gateway): void {
  app.openapi(
    openRoute({
      method: 'post',
      path: '/session',
      summary: 'Log in: a cookie for the pages of this server, in exchange for a token',
      request: { body: json(z.strictObject({ token: z.string().min(1).max(512) }), 'The token') },
      responses: { 200: json(begun, 'The cookie is set') },
    }),
    async (c) => {
      const holder = await c.env.attempt(() => holders.bySecret(c.req.valid('json').token))
      const held = holder && holders.byId(holder.id)
      if (!holder || !held) throw unauthorized('this token is not in force')
      const expires = Date.now() + sessionSeconds * 1000
      c.header('set-cookie', beginSession({ id: holder.id, expires, digest: held.digest }, { name: c.env.cookie, secure }))
      return c.json({ name: holder.name, scopes: [...holder.scopes], expires }, 200)
    },
  )
  addJsonRoute(app, inScope(anyScope), 'get /session', {
    summary: 'Who am I?',
    gives: [who, 'The token of this request'],
    answer: async ({ caller }) => ({ name: caller.name, scopes: [...caller.scopes] }),
  })
  app.openapi(
    openRoute({ method: 'delete', path: '/session', summary: 'Log out', responses: { 200: json(ended, 'The cookie is gone') } }),
    (c) => {
      c.header('set-cookie', endSession({ name: c.env.cookie, secure }))
      return c.json({ ended: true } as const, 200)
    },
  )
}
