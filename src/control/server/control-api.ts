/** Puts the routes of the control plane together, describes them in /openapi.json, and serves the dashboard and the metrics. */

import { z } from '@hono/zod-openapi'
import { dashboardPage, pageFiles } from '../../dashboard/dashboard-page.ts'
import { createApi, createFailures, documentOf, documentRoute, eventStream, json, openRoute } from '../../http/api.ts'
import { beginSession, cookieOf, endSession, sessionSeconds, unauthorized } from '../../http/callers.ts'
import { prometheusText, prometheusType } from '../../http/prometheus.ts'
import { createQuickRoutes } from '../../http/quick-routes.ts'
import type { Answering } from '../../http/serve-api.ts'
import type { Caller } from '../contract/caller.ts'
import { httpErrorOf } from '../contract/plane-refusal.ts'
import { type ControlApi, type ControlRoutes, type ControlServer, controlRoute, prefix } from './control-route.ts'
import { gauge } from './counters.ts'
import { sessionOf } from './find-caller.ts'
import { activityRoutes } from './routes/activity-routes.ts'
import { agentRoutes, budgetRoutes, hostRoutes, keyRoutes, scheduleRoutes } from './routes/fleet-routes.ts'
import { runFileRoutes, runRoutes } from './routes/run-routes.ts'
import { approvalRoutes, claimRoutes, decisionRoutes, effectRoutes, taskRoutes } from './routes/task-routes.ts'

export function controlApi(server: ControlServer, failed: (error: unknown) => void): Answering<Caller> {
  const options = { errorOf: httpErrorOf, failed }
  const app: ControlApi = createApi<Caller>(options)
  const quick = createQuickRoutes(app, createFailures(options))
  for (const add of controlRoutes) add(app, server, quick)
  describeModelPaths(app)
  const { version } = server
  const info = { title: 'BraidClaw control plane', version, description: 'Tasks, budgets, approvals and runs of a fleet of agents.' }
  app.openapi(controlRoute(documentRoute), (c) => c.json(documentOf(app, info), 200))
  return { fetch: (request, env) => quick.answer(request, env) ?? app.fetch(request, env) }
}

const controlRoutes: readonly ControlRoutes[] = [
  // Each module has one line.
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

/** Only describes these routes: src/control/llm answers them itself, in the form of the vendors. */
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

/** `server` tells the page which pages to show. */
const who = z.object({ id: z.string(), name: z.string(), scopes: z.array(z.string()), server: z.literal('control') })
const whole: { scopes: string[]; server: 'control' } = { scopes: ['admin'], server: 'control' }

const begun = z.object({ ...who.shape, expires: z.int().openapi({ description: 'Milliseconds since 1970' }) })

export function pageRoutes(app: ControlApi, { plane, secure, now, counters }: ControlServer): void {
  const page = dashboardPage()
  app.get('/', page)
  app.get(pageFiles, page)
  app.openapi(
    openRoute({
      method: 'post',
      path: '/session',
      summary: 'Log in: a cookie for the pages of this server, in exchange for an operator token',
      request: { body: json(z.strictObject({ token: z.string().min(1).max(512) }), 'The token') },
      responses: { 200: json(begun, 'The cookie is set') },
    }),
    async (c) => {
      const { token } = c.req.valid('json')
      const caller = await c.env.attempt(async () => {
        const owner = await plane.access.callerOf(token)
        return owner?.kind === 'operator' ? owner : undefined
      })
      const operator = caller && (await plane.access.operator(caller.id))
      if (!caller || !operator) throw unauthorized('this is not an operator token in force')
      const expires = now() + sessionSeconds * 1000
      c.header('set-cookie', beginSession({ id: caller.id, digest: operator.digest, expires }, { name: c.env.cookie, secure }))
      return c.json({ id: caller.id, name: caller.name, ...whole, expires }, 200)
    },
  )
  app.openapi(
    controlRoute({ method: 'get', path: '/session', summary: 'Who am I?', responses: { 200: json(who, 'The operator') } }),
    (c) => {
      const { caller } = c.var
      return c.json({ id: caller.id, name: caller.kind === 'operator' ? caller.name : caller.id, ...whole }, 200)
    },
  )
  app.openapi(
    openRoute({
      method: 'delete',
      path: '/session',
      summary: 'Log out',
      responses: { 200: json(z.object({ ended: z.literal(true) }), 'The session has ended') },
    }),
    async (c) => {
      const session = await sessionOf(plane.access, cookieOf(c.req.raw.headers, c.env.cookie)?.secret ?? '', now())
      if (session) await plane.access.endSession(session.nonce, session.expires)
      c.header('set-cookie', endSession({ name: c.env.cookie, secure }))
      return c.json({ ended: true } as const, 200)
    },
  )
  app.openapi(
    controlRoute({
      method: 'get',
      path: '/metrics',
      summary: 'Figures in the text format of Prometheus',
      responses: { 200: { description: 'The figures', content: { 'text/plain': { schema: z.string() } } } },
    }),
    async (c) => {
      const figures = Object.entries(await plane.figures()).map(([name, value]) =>
        gauge(`braidclaw_control_${name.replaceAll(/\W/g, '_')}`, `${name.replaceAll('_', ' ')} of the control plane.`, value),
      )
      return c.text(prometheusText([...figures, ...counters.metrics()]), 200, { 'content-type': prometheusType })
    },
  )
}
