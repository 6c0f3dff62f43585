/** Answers GET /cost: what the model calls have cost. A token with a memory of its own sees its own part. */

import { z } from '@hono/zod-openapi'
import type { CostReport, CostRow } from '../../../host/cost/cost.ts'
import { json, route } from '../../../http/api.ts'
import { spendKeys } from '../../../memory/spend/spend.ts'
import { ownerOf } from '../access.ts'
import type { Gateway, GatewayApi } from '../gateway.ts'

const query = z.object({
  days: z.coerce.number().int().min(1).max(3660).default(30).openapi({ description: 'How many days in UTC, today included' }),
  by: z.enum(spendKeys).default('day').openapi({ description: 'What each row adds up' }),
  limit: z.coerce.number().int().min(1).max(10_000).default(1000).openapi({ description: 'The most rows; the total counts all' }),
})

const amounts = {
  calls: z.int(),
  input_tokens: z.int(),
  output_tokens: z.int(),
  cached_tokens: z.int().openapi({ description: 'Of input_tokens: read from the cache of the provider' }),
  cached_share: z.number().openapi({ description: 'cached_tokens as a share of input_tokens, from 0 to 1' }),
  unsettled_tokens: z.int().openapi({ description: 'Reserved for calls that were never settled; they count as spent' }),
  tokens: z.int().openapi({ description: 'All that counts' }),
  cost_micros: z.int().openapi({ description: 'Millionths of a US dollar, without the calls of unknown price' }),
  unpriced_calls: z.int(),
  estimated_calls: z.int(),
  unsettled_calls: z.int(),
  lost_calls: z.int().openapi({ description: 'Broken off with nothing reserved: what they used is not known' }),
}

const answer = z.object({
  by: z.enum(spendKeys),
  days: z.int(),
  from: z.string(),
  to: z.string(),
  rows: z.array(z.object({ key: z.string(), title: z.string().nullable(), ...amounts })),
  more: z.int(),
  total: z.object(amounts),
  reserved: z.object({ tokens: z.int(), cost_micros: z.int() }),
  limits: z.array(
    z.object({
      scope: z.string(),
      setting: z.string(),
      unit: z.enum(['tokens', 'micros']),
      spent: z.int(),
      reserved: z.int(),
      limit: z.int(),
      left: z.int(),
      free_at: z.string().nullable(),
    }),
  ),
  day_ahead: z.string().nullable(),
})

export function costRoutes(app: GatewayApi, { host }: Gateway): void {
  app.openapi(
    route('read', {
      method: 'get',
      path: '/cost',
      summary: 'What the model calls have cost, against the limits',
      request: { query },
      responses: { 200: json(answer, 'Days are those of UTC') },
    }),
    async (c) => {
      const report = await host.cost({ ...c.req.valid('query'), token: ownerOf(c.var.caller) })
      return c.json(reportOut(report), 200)
    },
  )
}

function reportOut({ rows, total, reserved, limits, dayAhead, ...rest }: CostReport): z.infer<typeof answer> {
  return {
    ...rest,
    rows: rows.map((row) => ({ key: row.key, title: row.title ?? null, ...amountsOf(row) })),
    total: amountsOf(total),
    reserved: { tokens: reserved.tokens, cost_micros: reserved.micros },
    limits: limits.map(({ freeAt, ...limit }) => ({ ...limit, free_at: freeAt ?? null })),
    day_ahead: dayAhead ?? null,
  }
}

function amountsOf(spend: Omit<CostRow, 'key'>) {
  return {
    calls: spend.calls,
    input_tokens: spend.inputTokens,
    output_tokens: spend.outputTokens,
    cached_tokens: spend.cachedTokens,
    cached_share: spend.cachedShare,
    unsettled_tokens: spend.unsettledTokens,
    tokens: spend.tokens,
    cost_micros: spend.micros,
    unpriced_calls: spend.unpricedCalls,
    estimated_calls: spend.estimatedCalls,
    unsettled_calls: spend.unsettledCalls,
    lost_calls: spend.lostCalls,
  }
}
