/** Puts the routes of the gateway together, and describes them in /openapi.json. */

import { dashboardPage, pageFiles } from '../../dashboard/dashboard-page.ts'
import { createApi, documentOf, documentRoute, openRoute } from '../../http/api.ts'
import { HttpError } from '../../http/http-error.ts'
import { errnoOf } from '../../kit/errors.ts'
import { storageFailure } from '../../memory/storage-failure.ts'
import type { Caller } from './access.ts'
import type { Gateway, GatewayApi, Routes } from './gateway.ts'
import { errorFields, httpErrorOf } from './open-conversations.ts'
import { approvalRoutes } from './routes/approvals.ts'
import { chatRoutes } from './routes/chat.ts'
import { conversationRoutes, jobRoutes } from './routes/conversations.ts'
import { costRoutes } from './routes/cost.ts'
import { eventRoutes } from './routes/events.ts'
import { mcpRoutes, mcpServerRoutes } from './routes/mcp.ts'
import { openAiRoutes } from './routes/openai.ts'
import { policyRoutes } from './routes/policy.ts'
import { recordRoutes } from './routes/records.ts'
import { responseRoutes } from './routes/responses.ts'
import { runRoutes, runsRoutes } from './routes/runs.ts'
import { schedulesRoutes } from './routes/schedules.ts'
import { sopRoutes } from './routes/sops.ts'
import { metricsRoutes, sessionRoutes, statusRoutes } from './routes/status.ts'

export function gatewayApi(gateway: Gateway, failed: (error: unknown) => void): GatewayApi {
  const app: GatewayApi = createApi<Caller>({ errorOf: (error) => httpErrorOf(error) ?? storageError(gateway, error), failed, errorFields })
  for (const add of gatewayRoutes) add(app, gateway)
  const info = { title: 'BraidClaw', version: gateway.version, description: 'The gateway of a local-first agent runtime.' }
  app.openapi(openRoute(documentRoute), (c) => c.json(documentOf(app, info), 200))
  return app
}

/** Turns an error of the database into an answer that says what to do. */
function storageError({ setup }: Gateway, error: unknown): HttpError | undefined {
  const isOfDatabase = /^(?:SQLITE_|ESTALE)/.test(errnoOf(error) ?? '')
  const failure = isOfDatabase ? storageFailure(setup.config.memory.path, error) : undefined
  return failure && new HttpError(503, 'storage', failure.message, { 'retry-after': '2' })
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
  responseRoutes,
  metricsRoutes,
  costRoutes,
  schedulesRoutes,
  sopRoutes,
  mcpRoutes,
  mcpServerRoutes,
  dashboardRoutes,
]

/** Serves the page of the dashboard at / with its files. */
function dashboardRoutes(app: GatewayApi): void {
  const answer = dashboardPage()
  app.get('/', answer)
  app.get(pageFiles, answer)
}
