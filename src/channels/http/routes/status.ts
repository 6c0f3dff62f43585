/** Answers what the server is and what it does (GET /health, /status, /metrics), and begins and ends the session of a browser (/session). */

import { z } from '@hono/zod-openapi'
import { addJsonRoute, anyScope, inScope, json, openRoute, route } from '../../../http/api.ts'
import { beginSession, cookieOf, endSession, sessionSeconds, unauthorized } from '../../../http/callers.ts'
import { type Metric, prometheusText, prometheusType } from '../../../http/prometheus.ts'
import { readStop } from '../../../service/stop-file.ts'
import { healthOf } from '../../inbox/channel-api.ts'
import { status } from '../answer-shapes.ts'
import type { Gateway, GatewayApi } from '../gateway.ts'

const health = z.object({
  ok: z.boolean(),
  version: z.string(),
  status: z.literal('degraded').optional(),
  problems: z.array(z.string()).optional(),
})

export function statusRoutes(app: GatewayApi, { host, setup, version }: Gateway): void {
  const answer = json(health, 'It is, and its database takes writes; otherwise 503')
  app.openapi(openRoute({ method: 'get', path: '/health', summary: 'Is it there?', responses: { 200: answer } }), (c) =>
    c.json(healthOf(host, version), 200),
  )
  addJsonRoute(app, inScope('read'), 'get /status', {
    summary: 'What runs here, and under which rules',
    gives: [status, 'The state now'],
    async answer() {
      const { config, paths } = setup
      const reason = readStop(paths.estop)
      const receipts = host.receipts()
      return {
        version,
        autonomy: config.security.autonomy,
        workspace: config.workspaceDir,
        provider: config.defaultProvider,
        model: config.defaultModel,
        channels: [...host.running()],
        troubles: [...host.channelStore.troubles()],
        estop: { stopped: reason !== undefined, reason: reason ?? null },
        receipts: { count: receipts?.count ?? 0, head: receipts?.head ?? null },
      }
    },
  })
}

/** Answers GET /metrics for Prometheus. */
export function metricsRoutes(app: GatewayApi, { telemetry, host }: Gateway): void {
  const channels = (): Metric => {
    const broken = host.channelStore.troubles().map(({ channel }) => channel)
    const samples = host.running().map((channel) => ({ labels: { channel }, value: broken.includes(channel) ? 0 : 1 }))
    return { name: 'braidclaw_channel_up', type: 'gauge', help: 'Whether a channel reaches its service.', samples }
  }

  app.openapi(
    route('read', {
      method: 'get',
      path: '/metrics',
      summary: 'What was done since the server began, in the text format of Prometheus',
      responses: { 200: { description: 'The metrics', content: { 'text/plain': { schema: z.string() } } } },
    }),
    async (c) => c.text(prometheusText([...(await telemetry).metrics(), channels()]), 200, { 'content-type': prometheusType }),
  )
}

const who = z.object({ name: z.string(), scopes: z.array(z.string()) })
const begun = z.object({ ...who.shape, expires: z.int().openapi({ description: 'Milliseconds since 1970' }) })
const ended = z.object({ ended: z.literal(true) })

/** Begins and ends the session of a browser: POST, GET and DELETE /session. */
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
      if (!holder) throw unauthorized('this token is not in force')
      const expires = Date.now() + sessionSeconds * 1000
      c.header('set-cookie', beginSession({ id: holder.id, expires, digest: holder.digest }, { name: c.env.cookie, secure }))
      return c.json({ name: holder.name, scopes: [...holder.scopes], expires }, 200)
    },
  )
  addJsonRoute(app, inScope(anyScope), 'get /session', {
    summary: 'Who am I?',
    gives: [who, 'The token of this request'],
    answer: async ({ caller }) => ({ name: caller.name, scopes: [...caller.scopes] }),
  })
  app.openapi(
    openRoute({ method: 'delete', path: '/session', summary: 'Log out', responses: { 200: json(ended, 'The session has ended') } }),
    (c) => {
      holders.logOut(cookieOf(c.req.raw.headers, c.env.cookie)?.secret ?? '')
      c.header('set-cookie', endSession({ name: c.env.cookie, secure }))
      return c.json({ ended: true } as const, 200)
    },
  )
}
