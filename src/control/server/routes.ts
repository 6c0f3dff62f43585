/** Lists the route modules of the control plane. */

import type { ControlRoutes } from './control-server.ts'
import { activityRoutes } from './routes/activity-routes.ts'
import { agentRoutes } from './routes/agent-routes.ts'
import { approvalRoutes } from './routes/approval-routes.ts'
import { budgetRoutes } from './routes/budget-routes.ts'
import { claimRoutes } from './routes/claim-routes.ts'
import { decisionRoutes } from './routes/decision-routes.ts'
import { effectRoutes } from './routes/effect-routes.ts'
import { hostRoutes } from './routes/host-routes.ts'
import { keyRoutes } from './routes/key-routes.ts'
import { pageRoutes } from './routes/page-routes.ts'
import { runFileRoutes } from './routes/run-file-routes.ts'
import { runRoutes } from './routes/run-routes.ts'
import { scheduleRoutes } from './routes/schedule-routes.ts'
import { taskRoutes } from './routes/task-routes.ts'

export const controlRoutes: readonly ControlRoutes[] = [
  // One line per module.
  taskRoutes,
  claimRoutes,
  decisionRoutes,
  effectRoutes,
  approvalRoutes,
  activityRoutes,
  budgetRoutes,
  agentRoutes,
  keyRoutes,
  runRoutes,
  runFileRoutes,
  scheduleRoutes,
  hostRoutes,
  pageRoutes,
]
