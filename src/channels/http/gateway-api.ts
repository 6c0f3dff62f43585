/** Puts the routes of the gateway together, and describes them in /openapi.json. */

import { z } from '@hono/zod-openapi'
import { json } from '../../http/answers/shapes.ts'
import { createApi, openRoute } from '../../http/api.ts'
import type { Caller } from './access/token-access.ts'
import type { Gateway, GatewayApi } from './gateway.ts'
import { errorFields } from './openai/answers.ts'
import { gatewayRoutes } from './routes.ts'
import { httpErrorOf } from './turns/talks.ts'

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
