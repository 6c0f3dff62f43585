/** Puts the routes of the control plane together, and describes them in /openapi.json. */

import { z } from '@hono/zod-openapi'
import { eventStream, json } from '../../http/answers/shapes.ts'
import { createApi, createFailures } from '../../http/api.ts'
import { createQuickRoutes } from '../../http/quick-routes.ts'
import type { Answering } from '../../http/serve-api.ts'
import type { Caller } from '../contract/caller.ts'
import { controlRoute, prefix } from './access/control-route.ts'
import type { ControlApi, ControlRoutes, ControlServer } from './control-server.ts'
import { httpErrorOf } from './refusal-status.ts'
import { activityRoutes } from './routes/activity-routes.ts'
import { agentRoutes, budgetRoutes, keyRoutes, scheduleRoutes } from './routes/fleet-routes.ts'
import { hostRoutes } from './routes/host-routes.ts'
import { pageRoutes } from './routes/page-routes.ts'
import { runFileRoutes, runRoutes } from './routes/run-routes.ts'
import { approvalRoutes, claimRoutes, decisionRoutes, effectRoutes, taskRoutes } from './routes/task-routes.ts'

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

const controlRoutes: readonly ControlRoutes[] = [
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

const paths = [
  ['post', '/chat/completions', "OpenAI's chat completions, metered"],
  ['post', '/responses', "OpenAI's responses, metered"],
  ['post', '/messages', "Anthropic's messages, metered; the token may also come as X-Api-Key"],
  ['post', '/messages/count_tokens', "Anthropic's count of the tokens of a request"],
  ['get', '/models', 'The models of the upstream'],
] as const

/** Describes them only: src/control/llm answers them itself, in the form of the vendors. */
function describeModelPaths(app: ControlApi): void {
  const vendorsObject = z.looseObject({})
  for (const [method, path, summary] of paths)
    app.openAPIRegistry.registerPath({
      method,
      path: `${prefix}/llm/v1${path}`,
      summary,
      security: [{ bearer: ['run'] }],
      ...(method === 'post' ? { request: { body: json(vendorsObject, 'As the vendor describes it') } } : {}),
      responses: {
        200: { description: 'As the vendor answers', content: { 'application/json': { schema: vendorsObject }, ...eventStream } },
        402: json(vendorsObject, 'The budget is reached; in the form of the vendor'),
      },
    })
}
