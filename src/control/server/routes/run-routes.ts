/** Lists and shows runs, and takes what a run delivers at its end. */

import { z } from '@hono/zod-openapi'
import { rangeOf, rangeResponse } from '../../../http/byte-range.ts'
import { quiet } from '../../../http/http-error.ts'
import type { Connection } from '../../../http/listen.ts'
import type { Caller } from '../../contract/caller.ts'
import { listedRun, run } from '../../contract/run-shapes.ts'
import type { ControlApi, ControlServer } from '../control-route.ts'
import { addRoute, controlRoute, prefix } from '../control-route.ts'
import { artifactAt, runAt, runListQuery, whole } from '../request-shapes.ts'

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
  addRoute(app, 'get', '/runs', {
    summary: 'Runs, newest first, without their manifests',
    query: runListQuery,
    gives: [page, 'The runs; "next" is the "after" of the next page'],
    answer: ({ caller, query }) => plane.runs.list(caller, query),
  })
  addRoute(app, 'get', '/runs/{id}', {
    summary: 'One run',
    params: runAt,
    gives: [run, 'The run'],
    answer: ({ caller, params }) => plane.runs.get(caller, params.id),
  })
  addRoute(app, 'post', '/runs/{id}/deliver', {
    summary: 'Deliver the signed manifest of a run, and what became of its changes',
    params: runAt,
    body: [delivery, 'What is delivered'],
    gives: [run, 'The run now'],
    answer: ({ caller, params, body }) => plane.runs.deliver(caller, params.id, body),
  })
}

const piece = z.strictObject({ at: z.int().min(0).max(1e12), piece: z.string().max(1_048_576) })
const logState = z.object({ log_bytes: z.int(), log_truncated: z.boolean() })
const upload = z.strictObject({
  digest: z.string().regex(/^[0-9a-f]{64}$/, 'a digest is the SHA-256 of the bytes in 64 hex digits'),
  body: z.base64().max(1_500_000),
})
const stored = z.object({ name: z.string(), digest: z.string(), bytes: z.int() })
const bytes = (type: string) => ({ [type]: { schema: z.string() } })

export function runFileRoutes(app: ControlApi, server: ControlServer): void {
  const { runs } = server.plane
  app.openapi(
    controlRoute({
      method: 'get',
      path: `${prefix}/runs/{id}/log`,
      summary: 'The log of a run; a part of it with Range: bytes= or ?from=&to=; with wait_ms it waits for what comes after "from"',
      request: {
        params: runAt,
        query: z.object({ from: z.optional(whole(1e12)), to: z.optional(whole(1e12)), wait_ms: z.optional(whole(25_000)) }),
        headers: z.object({ range: z.optional(z.string().max(200)) }),
      },
      responses: {
        200: { description: 'The log; X-Log-Bytes says how long it is', content: bytes('text/plain') },
        206: { description: 'The part', content: bytes('text/plain') },
        416: { description: 'The log has no such bytes' },
      },
    }),
    async (c) => {
      const { id } = c.req.valid('param')
      const { from, to, wait_ms } = c.req.valid('query')
      if (wait_ms !== undefined) await growth(server, c.var.caller, { id, from: from ?? 0, wait_ms, connection: c.env.connection })
      const { log_bytes } = await runs.get(c.var.caller, id)
      const range = from === undefined && to === undefined ? rangeOf(c.req.valid('header').range, log_bytes) : undefined
      if (range === 'none') return rangeResponse({ total: log_bytes })
      const part = range ?? { from: Math.min(from ?? 0, log_bytes), to: Math.min(to ?? log_bytes, log_bytes) }
      const log = await runs.log(c.var.caller, id, part.from, Math.max(part.from, part.to))
      return rangeResponse({ total: log_bytes, bytes: log.bytes, from: range?.from })
    },
  )
  addRoute(app, 'post', '/runs/{id}/log', {
    summary: 'Append to the log; a piece that was sent before is stored once',
    params: runAt,
    body: [piece, 'The byte where it begins, and the text'],
    gives: [logState, 'How long the log is now'],
    replay: 'none',
    answer: ({ caller, params, body }) => runs.appendLog(caller, params.id, body.at, body.piece),
  })
  app.openapi(
    controlRoute({
      method: 'get',
      path: `${prefix}/runs/{id}/artifacts/{name}`,
      summary: 'The bytes of an artifact',
      request: { params: artifactAt },
      responses: { 200: { description: 'The bytes; X-Digest-SHA256 is their digest', content: bytes('application/octet-stream') } },
    }),
    async (c) => {
      const { id, name } = c.req.valid('param')
      const { digest, body } = await runs.artifact(c.var.caller, id, name)
      return new Response(Buffer.from(body, 'base64'), {
        headers: {
          ...quiet,
          'content-type': 'application/octet-stream',
          'content-disposition': `attachment; filename="${name}"`,
          'x-digest-sha256': digest,
        },
      })
    },
  )
  addRoute(app, 'put', '/runs/{id}/artifacts/{name}', {
    summary: 'Deliver an artifact of at most 1 MiB; the same bytes again change nothing',
    params: artifactAt,
    body: [upload, 'The bytes in base64, and their digest'],
    gives: [stored, 'It is kept'],
    others: { 409: 'There are other bytes of this name' },
    replay: 'none',
    answer: ({ caller, params, body }) => runs.putArtifact(caller, params.id, { name: params.name, ...body }),
  })
}

type Growth = { readonly id: string; readonly from: number; readonly wait_ms: number; readonly connection: Connection }

async function growth(
  { plane, stopping, counters }: ControlServer,
  caller: Caller,
  { id, from, wait_ms, connection }: Growth,
): Promise<void> {
  const ended = counters.began('poll', caller)
  connection.stay()
  const late = AbortSignal.timeout(wait_ms)
  await plane.runs.logGrows(caller, id, from, AbortSignal.any([connection.disconnected, stopping, late])).finally(ended)
}
