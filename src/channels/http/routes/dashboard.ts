/** Serves the page of the dashboard at / with its files. */

import { dashboardPage, pageFiles } from '../../../dashboard/dashboard-page.ts'
import type { GatewayApi } from '../gateway.ts'

export function dashboardRoutes(app: GatewayApi): void {
  const answer = dashboardPage()
  app.get('/', answer)
  app.get(pageFiles, answer)
}
