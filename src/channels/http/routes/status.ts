/** Answers what the server is and what it does: GET /health, GET /status and GET /metrics. */

import { z } from '@hono/zod-openapi'
import { json } from '../../../http/answers/shapes.ts'
import { addJsonRoute, inScope, openRoute, route } from '../../../http/api.ts'
import { prometheusText, prometheusType } from '../../../http/prometheus.ts'
import { readStop } from '../../../service/stop-file.ts'
import type { Gateway, GatewayApi } from '../gateway.ts'

const health = z.object({ ok: z.literal(true), version: z.string() })
const status = z.object({
  version: z.string(),
  autonomy: z.enum(['readonly', 'supervised', 'full']),
  workspace: z.string(),
  provider: z.string(),
  model: z.string(),
  channels: z.array(z.string()),
  estop: z.object({ stopped: z.boolean(), reason: z.string().nullable() }),
  receipts: z.object({ count: z.int(), head: z.string().nullable() }),
})

export function statusRoutes(app: GatewayApi, { host, setup, version }: Gateway): void {
  app.openapi(openRoute({ method: 'get', path: '/health', summary: 'Is it there?', responses: { 200: json(health, 'It is') } }), (c) =>
    c.json({ ok: true, version } as const, 200),
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
        estop: { stopped: reason !== undefined, reason: reason ?? null },
        receipts: { count: receipts?.count ?? 0, head: receipts?.head ?? null },
      }
    },
  })
}

/** Answers GET /metrics for Prometheus. */
export function metricsRoutes(app: GatewayApi, { telemetry }: Gateway): void {
  app.openapi(
    route('read', {
      method: 'get',
      path: '/metrics',
      summary: 'What was done since the server began, in the text format of Prometheus',
      responses: { 200: { description: 'The metrics', content: { 'text/plain': { schema: z.string() } } } },
    }),
    async (c) => c.text(prometheusText((await telemetry).metrics()), 200, { 'content-type': prometheusType }),
  )
}
