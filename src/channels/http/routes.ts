/** Lists the route modules of the gateway. */

import type { Routes } from './gateway.ts'
import { chatRoutes } from './routes/chat.ts'
import { costRoutes } from './routes/cost.ts'
import { metricsRoutes } from './routes/metrics.ts'
import { openAiRoutes } from './routes/openai.ts'
import { runRoutes } from './routes/run.ts'
import { schedulesRoutes } from './routes/schedules.ts'
import { sessionRoutes } from './routes/session.ts'
import { statusRoutes } from './routes/status.ts'

export const gatewayRoutes: readonly Routes[] = [
  // One line per module.
  statusRoutes,
  sessionRoutes,
  chatRoutes,
  runRoutes,
  openAiRoutes,
  metricsRoutes,
  costRoutes,
  schedulesRoutes,
]
