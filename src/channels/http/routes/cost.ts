/** Answers GET /cost: what the model calls have cost. A token with a memory of its own sees its own part. */

import { z } from '@hono/zod-openapi'
import type { CostReport, CostRow } from '../../../host/access/cost/cost.ts'
import { addJsonRoute, inScope } from '../../../http/api.ts'
import { spendKeys } from '../../../memory/spend/spend.ts'
import { ownerOf } from '../access.ts'
import { costReport } from '../answer-shapes.ts'
import type { Gateway, GatewayApi } from '../gateway.ts'

const query = z.object({
  days: z.coerce.number().int().min(1).max(3660).default(30).openapi({ description: 'How many days in UTC, today included' }),
  by: z.enum(spendKeys).default('day').openapi({ description: 'What each row adds up' }),
  limit: z.coerce.number().int().min(1).max(10_000).default(1000).openapi({ description: 'The most rows; the total counts all' }),
})

const answer = z.object({ by: z.enum(spendKeys), ...costReport.shape })

export function costRoutes(app: GatewayApi, { host }: Gateway): void {
  addJsonRoute(app, inScope('read'), 'get /cost', {
    summary: 'What the model calls have cost, against the limits',
    query,
    gives: [answer, 'Days are those of UTC'],
    answer: async ({ caller, query }) => reportOut(await host.cost({ ...query, token: ownerOf(caller) })),
  })
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
