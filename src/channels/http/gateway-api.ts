/** Puts the routes of the gateway together, and describes them in /openapi.json. */

import { z } from '@hono/zod-openapi'
import { dashboardPage, pageFiles } from '../../dashboard/dashboard-page.ts'
import { createApi, json, openRoute } from '../../http/api.ts'
import type { Caller } from './access.ts'
import type { Gateway, GatewayApi, Routes } from './gateway.ts'
import { errorFields, httpErrorOf } from './open-conversations.ts'
import { approvalRoutes } from './routes/approvals.ts'
import { chatRoutes } from './routes/chat.ts'
import { conversationRoutes, jobRoutes } from './routes/conversations.ts'
import { costRoutes } from './routes/cost.ts'
import { eventRoutes } from './routes/events.ts'
import { openAiRoutes } from './routes/openai.ts'
import { policyRoutes } from './routes/policy.ts'
import { recordRoutes } from './routes/records.ts'
import { runRoutes, runsRoutes } from './routes/runs.ts'
import { schedulesRoutes } from './routes/schedules.ts'
import { metricsRoutes, sessionRoutes, statusRoutes } from './routes/status.ts'

export function gatewayApi(gateway: Gateway, failed: (error: unknown) => void): GatewayApi {
  const app: GatewayApi = createApi<Caller>({ errorOf: httpErrorOf, failed, errorFields })
  for (const add of gatewayRoutes) add(app, gateway)
  app.openapi(
    openRoute({
      method: 'get',
      path: '/openapi.json',
      summary: 'This API, described',
      responses: { 200: json(z.looseObject({}), 'An OpenAPI 3.1 document') },
    }),
    (c) => c.json(documentOf(app, gateway.version), 200),
  )
  return app
}

export function documentOf(app: GatewayApi, version: string) {
  app.openAPIRegistry.registerComponent('securitySchemes', 'bearer', { type: 'http', scheme: 'bearer' })
  return app.getOpenAPI31Document({
    openapi: '3.1.0',
    info: { title: 'BraidClaw', version, description: 'The gateway of a local-first agent runtime.' },
  })
}

/** Lists the route modules of the gateway. */
const gatewayRoutes: readonly Routes[] = [
  // One line per module.
  statusRoutes,
  sessionRoutes,
  chatRoutes,
  runRoutes,
  runsRoutes,
  conversationRoutes,
  jobRoutes,
  approvalRoutes,
  recordRoutes,
  policyRoutes,
  eventRoutes,
  openAiRoutes,
  metricsRoutes,
  costRoutes,
  schedulesRoutes,
  dashboardRoutes,
]

/** Serves the page of the dashboard at / with its files. */
function dashboardRoutes(app: GatewayApi): void {
  const answer = dashboardPage()
  app.get('/', answer)
  app.get(pageFiles, answer)
}
