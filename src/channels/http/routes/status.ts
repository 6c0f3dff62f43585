/** Answers what the server is and what it does: GET /health and GET /status. */

import { z } from '@hono/zod-openapi'
import { json } from '../../../http/answers/shapes.ts'
import { openRoute, route } from '../../../http/api.ts'
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
  app.openapi(
    route('read', {
      method: 'get',
      path: '/status',
      summary: 'What runs here, and under which rules',
      responses: { 200: json(status, 'The state now') },
    }),
    (c) => {
      const { config, paths } = setup
      const reason = readStop(paths.estop)
      const receipts = host.receipts()
      return c.json(
        {
          version,
          autonomy: config.security.autonomy,
          workspace: config.workspaceDir,
          provider: config.defaultProvider,
          model: config.defaultModel,
          channels: [...host.running()],
          estop: { stopped: reason !== undefined, reason: reason ?? null },
          receipts: { count: receipts?.count ?? 0, head: receipts?.head ?? null },
        },
        200,
      )
    },
  )
}
