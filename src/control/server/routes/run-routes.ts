/** Lists and shows runs, and takes what a run delivers at its end. */

import { z } from '@hono/zod-openapi'
import { json, plain } from '../../../http/answers/shapes.ts'
import { listedRun, run } from '../../contract/run-shapes.ts'
import { controlRoute, prefix } from '../access/control-route.ts'
import type { ControlApi, ControlServer } from '../control-server.ts'
import { runAt, runListQuery } from '../request-shapes.ts'

const page = z.object({ runs: z.array(listedRun), next: z.nullable(z.string()) })
const manifest = z
  .record(z.string().max(256), z.unknown())
  .refine((value) => JSON.stringify(value).length <= 524_288, 'more than 512 KiB of JSON')
const delivery = z.strictObject({
  manifest: z.optional(manifest),
  changes: z.optional(z.enum(['none', 'waiting', 'applied', 'dropped'])),
  skill: z.optional(z.string().max(200)),
})

export function runRoutes(app: ControlApi, { plane }: ControlServer): void {
  app.openapi(
    controlRoute({
      method: 'get',
      path: `${prefix}/runs`,
      summary: 'Runs, newest first, without their manifests',
      request: { query: runListQuery() },
      responses: { 200: json(page, 'The runs; "next" is the "after" of the next page') },
    }),
    async (c) => c.json(plain(await plane.runs.list(c.var.caller, c.req.valid('query'))), 200),
  )
  app.openapi(
    controlRoute({
      method: 'get',
      path: `${prefix}/runs/{id}`,
      summary: 'One run',
      request: { params: runAt },
      responses: { 200: json(run, 'The run') },
    }),
    async (c) => c.json(plain(await plane.runs.get(c.var.caller, c.req.valid('param').id)), 200),
  )
  app.openapi(
    controlRoute({
      method: 'post',
      path: `${prefix}/runs/{id}/deliver`,
      summary: 'Deliver the signed manifest of a run, and what became of its changes',
      request: { params: runAt, body: json(delivery, 'What is delivered') },
      responses: { 200: json(run, 'The run now') },
    }),
    async (c) => c.json(plain(await plane.runs.deliver(c.var.caller, c.req.valid('param').id, c.req.valid('json'))), 200),
  )
}
