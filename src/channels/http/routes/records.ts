/** Answers what is recorded besides runs: tools, memory, pins and receipts; and sets or clears the emergency stop. */

import { z } from '@hono/zod-openapi'
import { FailureError } from '../../../host/failure.ts'
import { count, json, plain } from '../../../http/answers/shapes.ts'
import { route } from '../../../http/api.ts'
import { HttpError } from '../../../http/http-error.ts'
import { type Caller, ownerOf } from '../access/token-access.ts'
import type { Gateway, GatewayApi } from '../gateway.ts'
import { orMissing } from '../missing.ts'

const tool = z.looseObject({ name: z.string(), description: z.string(), risk: z.string(), active: z.boolean(), source: z.string() })
const hit = z.object({
  conversation_id: z.string(),
  turn_id: z.string(),
  role: z.string(),
  at: z.int(),
  snippet: z.string(),
  score: z.number(),
})
const receipt = z.looseObject({ id: z.string(), seq: z.int(), tool: z.string(), status: z.string(), receipt_hash: z.string() })
const pin = z.object({ number: z.int(), text: z.string(), at: z.string() })
const stop = z.object({ stopped: z.boolean(), reason: z.string().nullable() })
const anchor = z.object({ line: z.string(), count: z.int(), head: z.string() })
const verified = z.looseObject({ ok: z.boolean(), count: z.int(), problems: z.array(z.string()) })
const verification = z.strictObject({
  deep: z.boolean().optional().openapi({ description: 'Also compare with the journal' }),
  against: z.string().max(200).optional().openapi({ description: 'An anchor line that was kept elsewhere' }),
})
const whole = z.coerce.number().pipe(z.int().min(0))

export function recordRoutes(app: GatewayApi, { host, talks }: Gateway): void {
  app.openapi(
    route('read', {
      method: 'get',
      path: '/tools',
      summary: 'The tools, their risk, and whether the model is offered them',
      responses: { 200: json(z.array(tool), 'As braidclaw tool list --json') },
    }),
    async (c) => {
      const tools = await (await host.records()).tools()
      const own = c.var.caller.access.tools
      return c.json(
        tools.map((each) =>
          own === undefined || own.includes(each.name) ? { ...each } : { ...each, active: false, why: 'not among the tools of this token' },
        ),
        200,
      )
    },
  )
  app.openapi(
    route('read', {
      method: 'get',
      path: '/memory/search',
      summary: 'Search what was said, best matches first',
      request: { query: z.object({ q: z.string().min(1).max(1_000), limit: count(100) }) },
      responses: { 200: json(z.object({ results: z.array(hit) }), 'The matches') },
    }),
    async (c) => {
      const { q, limit = 10 } = c.req.valid('query')
      const found = (await host.records()).memory.search({ query: q, limit, ownedBy: ownerOf(c.var.caller) })
      const results = found.map(({ conversationId, turnId, role, at, snippet, score }) => ({
        conversation_id: conversationId,
        turn_id: turnId,
        role,
        at,
        snippet,
        score,
      }))
      return c.json({ results }, 200)
    },
  )
  app.openapi(
    route('read', {
      method: 'get',
      path: '/receipts',
      summary: 'Receipts, oldest first; without "after" the newest ones',
      request: { query: z.object({ after: z.optional(whole), limit: count(500) }) },
      responses: {
        200: json(
          z.object({ receipts: z.array(receipt), next: z.optional(z.int()), unreadable: z.int() }),
          '"next" is the "after" of the next page',
        ),
      },
    }),
    async (c) => {
      const { after, limit = 50 } = c.req.valid('query')
      const { receipts, ...rest } = (await host.records()).receipts.page({ limit, ...(after === undefined ? {} : { after }) })
      const seen = receipts.filter((each) => c.var.caller.access.memory === 'all' || talks.sees(c.var.caller, String(each.conversation_id)))
      return c.json({ ...rest, receipts: seen.map((each) => ({ ...each })) }, 200)
    },
  )
  app.openapi(
    route('read', {
      method: 'post',
      path: '/receipts/verify',
      summary: 'Replay the chain of receipts',
      request: {
        body: json(verification, 'How'),
      },
      responses: { 200: json(verified, 'ok is false when something was altered; problems says what') },
    }),
    async (c) => c.json(plain(await (await host.records()).receipts.verify(given(c.req.valid('json')))), 200),
  )
  app.openapi(
    route('read', {
      method: 'get',
      path: '/receipts/anchor',
      summary: 'The line that proves how far the receipts reached; keep it elsewhere',
      responses: { 200: json(anchor, 'The anchor'), 409: { description: 'The chain is broken, so it cannot be anchored' } },
    }),
    async (c) => {
      const { receipts } = await host.records()
      return c.json(
        orMissing(() => orBroken(receipts.anchor)),
        200,
      )
    },
  )
  app.openapi(
    route('admin', {
      method: 'post',
      path: '/estop',
      summary: 'Stop every tool of every process of this home, or lift the stop',
      request: { body: json(z.strictObject({ clear: z.optional(z.boolean()), reason: z.optional(z.string().min(1).max(500)) }), 'What') },
      responses: { 200: json(stop, 'The state now') },
    }),
    async (c) => {
      const { clear = false, reason } = c.req.valid('json')
      const { stop } = await host.records()
      const now = clear ? stop.clear() : stop.set(reason)
      return c.json({ stopped: now.stopped, reason: now.reason ?? null }, 200)
    },
  )
  app.openapi(
    route('read', {
      method: 'get',
      path: '/memory/pins',
      summary: 'Facts that stay in the system prompt',
      responses: { 200: json(z.object({ pins: z.array(pin) }), 'The pins') },
    }),
    async (c) => c.json({ pins: [...(await pinsOf(c.var.caller)).list()] }, 200),
  )
  app.openapi(
    route('admin', {
      method: 'post',
      path: '/memory/pins',
      summary: 'Keep a fact in the system prompt',
      request: { body: json(z.strictObject({ text: z.string().min(1).max(2_000) }), 'The fact') },
      responses: { 200: json(pin, 'It is kept') },
    }),
    async (c) => c.json((await pinsOf(c.var.caller)).add(c.req.valid('json').text), 200),
  )
  app.openapi(
    route('admin', {
      method: 'delete',
      path: '/memory/pins/{number}',
      summary: 'Take a pin away; those after it move up',
      request: { params: z.object({ number: whole }) },
      responses: { 200: json(pin, 'It is gone') },
    }),
    async (c) => {
      const pins = await pinsOf(c.var.caller)
      return c.json(
        orMissing(() => pins.remove(c.req.valid('param').number)),
        200,
      )
    },
  )

  /** Pins say what the operator told the agent. */
  async function pinsOf({ access }: Caller) {
    if (access.memory !== 'all') throw new HttpError(403, 'forbidden', 'this token has a memory of its own, so it does not see the pins')
    return (await host.records()).pins
  }
}

function given({ deep, against }: z.infer<typeof verification>): { readonly deep?: boolean; readonly against?: string } {
  return { ...(deep === undefined ? {} : { deep }), ...(against === undefined ? {} : { against }) }
}

function orBroken<T>(look: () => T): T {
  try {
    return look()
  } catch (error) {
    throw error instanceof FailureError && error.code === 'integrity' ? new HttpError(409, 'integrity', error.message) : error
  }
}
