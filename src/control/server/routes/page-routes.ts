/** Serves the dashboard with the session of its browser, and the metrics. */

import { z } from '@hono/zod-openapi'
import { dashboardPage, pageFiles } from '../../../dashboard/dashboard-page.ts'
import { json } from '../../../http/answers/shapes.ts'
import { openRoute } from '../../../http/api.ts'
import { unauthorized } from '../../../http/callers/credentials.ts'
import { beginSession, endSession, sessionSeconds } from '../../../http/callers/session-cookie.ts'
import { prometheusText, prometheusType } from '../../../http/prometheus.ts'
import { controlRoute } from '../access/control-route.ts'
import type { ControlApi, ControlServer } from '../control-server.ts'
import { gauge } from '../counters.ts'

/** `server` tells the page which pages to show. */
const who = z.object({ id: z.string(), name: z.string(), scopes: z.array(z.string()), server: z.literal('control') })
const whole: { scopes: string[]; server: 'control' } = { scopes: ['admin'], server: 'control' }

const begun = z.object({ ...who.shape, expires: z.int().openapi({ description: 'Milliseconds since 1970' }) })

export function pageRoutes(app: ControlApi, { plane, secure, now, counters }: ControlServer): void {
  const page = dashboardPage()
  app.get('/', page)
  app.get(pageFiles, page)
  app.openapi(
    openRoute({
      method: 'post',
      path: '/session',
      summary: 'Log in: a cookie for the pages of this server, in exchange for an operator token',
      request: { body: json(z.strictObject({ token: z.string().min(1).max(512) }), 'The token') },
      responses: { 200: json(begun, 'The cookie is set') },
    }),
    async (c) => {
      const { token } = c.req.valid('json')
      const caller = await c.env.attempt(async () => {
        const found = await plane.access.callerOf(token)
        return found?.kind === 'operator' ? found : undefined
      })
      const held = caller && (await plane.access.operator(caller.id))
      if (!caller || !held) throw unauthorized('this is no operator token in force')
      const expires = now() + sessionSeconds * 1000
      c.header('set-cookie', beginSession({ id: caller.id, digest: held.digest, expires }, { name: c.env.cookie, secure }))
      return c.json({ id: caller.id, name: caller.name, ...whole, expires }, 200)
    },
  )
  app.openapi(
    controlRoute({ method: 'get', path: '/session', summary: 'Who am I?', responses: { 200: json(who, 'The operator') } }),
    (c) => {
      const { caller } = c.var
      return c.json({ id: caller.id, name: caller.kind === 'operator' ? caller.name : caller.id, ...whole }, 200)
    },
  )
  app.openapi(
    openRoute({
      method: 'delete',
      path: '/session',
      summary: 'Log out',
      responses: { 200: json(z.object({ ended: z.literal(true) }), 'The cookie is gone') },
    }),
    (c) => {
      c.header('set-cookie', endSession({ name: c.env.cookie, secure }))
      return c.json({ ended: true } as const, 200)
    },
  )
  app.openapi(
    controlRoute({
      method: 'get',
      path: '/metrics',
      summary: 'Figures in the text format of Prometheus',
      responses: { 200: { description: 'The figures', content: { 'text/plain': { schema: z.string() } } } },
    }),
    async (c) => {
      const figures = Object.entries(await plane.figures()).map(([name, value]) =>
        gauge(`braidclaw_control_${name.replaceAll(/\W/g, '_')}`, `${name.replaceAll('_', ' ')} of the control plane.`, value),
      )
      return c.text(prometheusText([...figures, ...counters.metrics()]), 200, { 'content-type': prometheusType })
    },
  )
}
