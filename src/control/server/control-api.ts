/** Puts the routes of the control plane together, and describes them in /openapi.json. */

import { z } from '@hono/zod-openapi'
import { json } from '../../http/answers/shapes.ts'
import { createApi, createFailures } from '../../http/api.ts'
import { createQuickRoutes } from '../../http/quick-routes.ts'
import type { Answering } from '../../http/serve-api.ts'
import type { Caller } from '../contract/caller.ts'
import { controlRoute } from './access/control-route.ts'
import type { ControlApi, ControlServer } from './control-server.ts'
import { describeModelPaths } from './model-paths.ts'
import { httpErrorOf } from './refusal-status.ts'
import { controlRoutes } from './routes.ts'

export function controlApi(server: ControlServer, failed: (error: unknown) => void): Answering<Caller> {
  const options = { errorOf: httpErrorOf, failed }
  const app: ControlApi = createApi<Caller>(options)
  const quick = createQuickRoutes(app, createFailures(options))
  for (const add of controlRoutes) add(app, server, quick)
  describeModelPaths(app)
  app.openapi(
    controlRoute({
      method: 'get',
      path: '/openapi.json',
      summary: 'This API, described',
      responses: { 200: json(z.looseObject({}), 'An OpenAPI 3.1 document') },
    }),
    (c) => c.json(documentOf(app, server.version), 200),
  )
  return { fetch: (request, env) => quick.answer(request, env) ?? app.fetch(request, env) }
}

function documentOf(app: ControlApi, version: string) {
  app.openAPIRegistry.registerComponent('securitySchemes', 'bearer', { type: 'http', scheme: 'bearer' })
  return app.getOpenAPI31Document({
    openapi: '3.1.0',
    info: { title: 'BraidClaw control plane', version, description: 'Tasks, budgets, approvals and runs of a fleet of agents.' },
  })
}
