/** Answers what is recorded besides runs: tools, memory, pins and receipts; and sets or clears the emergency stop. */

import { z } from '@hono/zod-openapi'
import { addJsonRoute, count, inScope, plain } from '../../../http/api.ts'
import { HttpError } from '../../../http/http-error.ts'
import { type Caller, ownerOf } from '../access.ts'
import { hit, pin } from '../answer-shapes.ts'
import { type Gateway, type GatewayApi, orMissing, refusedAs, snake } from '../gateway.ts'

const tool = z.looseObject({ name: z.string(), description: z.string(), risk: z.string(), active: z.boolean(), source: z.string() })
const receipt = z.looseObject({ id: z.string(), seq: z.int(), tool: z.string(), status: z.string(), receipt_hash: z.string() })
const stop = z.object({ stopped: z.boolean(), reason: z.string().nullable() })
const anchor = z.object({ line: z.string(), count: z.int(), head: z.string() })
const verified = z.looseObject({ ok: z.boolean(), count: z.int(), problems: z.array(z.string()) })
const verification = z.strictObject({
  deep: z.boolean().optional().openapi({ description: 'Also compare with the journal' }),
  against: z.string().max(200).optional().openapi({ description: 'An anchor line that was kept elsewhere' }),
})
const whole = z.coerce.number().pipe(z.int().min(0))

export function recordRoutes(app: GatewayApi, { host, openConversations }: Gateway): void {
  addJsonRoute(app, inScope('read'), 'get /tools', {
    summary: 'The tools, their risk, and whether the model is offered them',
    gives: [z.array(tool), 'As braidclaw tool list --json'],
    async answer({ caller }) {
      const tools = await (await host.records()).tools()
      const own = caller.access.tools
      return tools.map((each) =>
        own === undefined || own.includes(each.name) ? { ...each } : { ...each, active: false, why: 'not among the tools of this token' },
      )
    },
  })
  addJsonRoute(app, inScope('read'), 'get /memory/search', {
    summary: 'Search all conversations, best matches first',
    query: z.object({ q: z.string().min(1).max(1_000), limit: count(100) }),
    gives: [z.object({ results: z.array(hit) }), 'The matches'],
    async answer({ caller, query }) {
      const { q, limit = 10 } = query
      const found = (await host.records()).memory.search({ query: q, limit, ownedBy: ownerOf(caller) })
      return { results: found.map(snake) }
    },
  })
  addJsonRoute(app, inScope('read'), 'get /receipts', {
    summary: 'Receipts, oldest first; without "after" the newest ones',
    query: z.object({ after: z.optional(whole), limit: count(500) }),
    gives: [
      z.object({ receipts: z.array(receipt), next: z.optional(z.int()), unreadable: z.int() }),
      '"next" is the "after" of the next page',
    ],
    async answer({ caller, query: { after, limit = 50 } }) {
      const { receipts, ...rest } = (await host.records()).receipts.page({ limit, after })
      const seen = receipts.filter((each) => caller.access.memory === 'all' || openConversations.sees(caller, String(each.conversation_id)))
      return { ...rest, receipts: seen.map((each) => ({ ...each })) }
    },
  })
  addJsonRoute(app, inScope('read'), 'post /receipts/verify', {
    summary: 'Replay the chain of receipts',
    body: [verification, 'How'],
    gives: [verified, 'ok is false when something was altered; problems says what'],
    answer: async ({ body }) => plain(await (await host.records()).receipts.verify(body)),
  })
  addJsonRoute(app, inScope('read'), 'get /receipts/anchor', {
    summary: 'The line that proves how far the receipts reached; keep it elsewhere',
    gives: [anchor, 'The anchor'],
    others: { 409: 'The chain is broken, so it cannot be anchored' },
    async answer() {
      const { receipts } = await host.records()
      return orMissing(() => refusedAs(['integrity', 409, 'integrity'], receipts.anchor))
    },
  })
  addJsonRoute(app, inScope('admin'), 'post /estop', {
    summary: 'Stop every tool of every process of this home, or lift the stop',
    body: [z.strictObject({ clear: z.optional(z.boolean()), reason: z.optional(z.string().min(1).max(500)) }), 'What'],
    gives: [stop, 'The state now'],
    async answer({ body: { clear = false, reason } }) {
      const { stop } = await host.records()
      const now = clear ? stop.clear() : stop.set(reason)
      return { stopped: now.stopped, reason: now.reason ?? null }
    },
  })
  addJsonRoute(app, inScope('read'), 'get /memory/pins', {
    summary: 'Facts that stay in the system prompt',
    gives: [z.object({ pins: z.array(pin) }), 'The pins'],
    answer: async ({ caller }) => ({ pins: [...(await pinsOf(caller)).list()] }),
  })
  addJsonRoute(app, inScope('admin'), 'post /memory/pins', {
    summary: 'Keep a fact in the system prompt',
    body: [z.strictObject({ text: z.string().min(1).max(2_000) }), 'The fact'],
    gives: [pin, 'It is kept'],
    answer: async ({ caller, body }) => (await pinsOf(caller)).add(body.text),
  })
  addJsonRoute(app, inScope('admin'), 'delete /memory/pins/{number}', {
    summary: 'Take a pin away; those after it move up',
    params: z.object({ number: whole }),
    gives: [pin, 'It is removed'],
    async answer({ caller, params }) {
      const pins = await pinsOf(caller)
      return orMissing(() => pins.remove(params.number))
    },
  })

  /** Pins come from the operator, so a token with a memory of its own does not see them. */
  async function pinsOf({ access }: Caller) {
    if (access.memory !== 'all') throw new HttpError(403, 'forbidden', 'this token has a memory of its own, so it does not see the pins')
    return (await host.records()).pins
  }
}
