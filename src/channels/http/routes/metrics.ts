/** Answers GET /metrics for Prometheus. */

import { z } from '@hono/zod-openapi'
import { route } from '../../../http/api.ts'
import { prometheusText, prometheusType } from '../../../http/prometheus.ts'
import type { Gateway, GatewayApi } from '../gateway.ts'

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
