/** Lists the route modules of the gateway. */

import type { Routes } from './gateway.ts'
import { openAiRoutes } from './openai/openai-routes.ts'
import { approvalRoutes } from './routes/approvals.ts'
import { chatRoutes } from './routes/chat.ts'
import { conversationRoutes } from './routes/conversations.ts'
import { costRoutes } from './routes/cost.ts'
import { dashboardRoutes } from './routes/dashboard.ts'
import { eventRoutes } from './routes/events.ts'
import { metricsRoutes } from './routes/metrics.ts'
import { policyRoutes } from './routes/policy.ts'
import { recordRoutes } from './routes/records.ts'
import { runRoutes } from './routes/run.ts'
import { runsRoutes } from './routes/runs.ts'
import { schedulesRoutes } from './routes/schedules.ts'
import { sessionRoutes } from './routes/session.ts'
import { statusRoutes } from './routes/status.ts'

export const gatewayRoutes: readonly Routes[] = [
  // One line per module.
  statusRoutes,
  sessionRoutes,
  chatRoutes,
  runRoutes,
  runsRoutes,
  conversationRoutes,
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
