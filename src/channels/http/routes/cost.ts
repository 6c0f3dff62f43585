/** Answers GET /cost: what the model calls have cost. A token with a memory of its own sees its own part. */

import { z } from '@hono/zod-openapi'
import type { CostReport } from '../../../host/access/cost/cost.ts'
import { addJsonRoute, inScope } from '../../../http/api.ts'
import { spendKeys } from '../../../memory/spend/spend.ts'
import { ownerOf } from '../access.ts'
import { costReport } from '../answer-shapes.ts'
import { type Gateway, type GatewayApi, snake } from '../gateway.ts'

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
    rows: rows.map(({ key, title, ...row }) => ({ key, title: title ?? null, ...amountsOf(row) })),
    total: amountsOf(total),
    reserved: { tokens: reserved.tokens, cost_micros: reserved.micros },
    limits: limits.map(({ freeAt, ...limit }) => ({ ...limit, free_at: freeAt ?? null })),
    day_ahead: dayAhead ?? null,
  }
}

function amountsOf({ micros, ...amounts }: CostReport['total']) {
  return { ...snake(amounts), cost_micros: micros }
}
