/** Reports what the model calls of a home have cost, added up by day, model, conversation, channel, token, agent or run. */

import type { Config } from '../../../config/config.ts'
import type { Memory } from '../../../memory/memory.ts'
import { createBudgetLedger, utcDay } from '../../../memory/spend/budget-ledger.ts'
import { createSpendTable, type Spend, type SpendKey, type SpendRow, spendKeys } from '../../../memory/spend/spend.ts'
import { cachedShare } from '../../../runtime/usage.ts'
import { FailureError } from '../../failure.ts'
import { type BudgetState, budgetStates } from './budget.ts'

export type CostQuery = {
  /** How many days in UTC, today included. Default: 30. */
  readonly days?: number
  /** Default: day. */
  readonly by?: SpendKey
  /** The most rows; the total counts all. Default: 1,000. */
  readonly limit?: number
  /** Only what this access token asked for, and only its own limits. */
  readonly token?: string
}

/**
 * `tokens` and `micros` are what counts: reservations that were never settled included. `cachedShare` is the part of the input that the
 * provider read from its cache, from 0 to 1.
 */
type Shares = { readonly tokens: number; readonly cachedShare: number }
export type CostRow = SpendRow & Shares

export type CostReport = {
  readonly by: SpendKey
  readonly days: number
  /** First and last day, in UTC. */
  readonly from: string
  readonly to: string
  readonly rows: readonly CostRow[]
  /** How many rows the limit cut off. */
  readonly more: number
  readonly total: Spend & Shares
  /** Reserved by calls under way, where a limit makes them reserve. */
  readonly reserved: { readonly tokens: number; readonly micros: number }
  readonly limits: readonly BudgetState[]
  /** A day that the clock of this computer has not reached yet, although calls were counted on it. */
  readonly dayAhead?: string
}

type Configured = { readonly config: Pick<Config, 'limits' | 'defaultAgent'> }

const most = { days: 3660, limit: 10_000 } as const
const dayMs = 86_400_000

/** @throws FailureError `usage` for a query that makes no sense */
export async function costOf(memory: Memory, { config }: Configured, query: CostQuery, now = Date.now()): Promise<CostReport> {
  const { days = 30, by = 'day', limit = 1000, token } = query
  check({ days, by, limit })
  const [spend, ledger] = [createSpendTable(memory.store, Date.now), createBudgetLedger(memory.store, Date.now)]
  const [from, to] = [utcDay(now - (days - 1) * dayMs), utcDay(now)]
  const range = { fromDay: from, token }
  const { rows, more, total } = spend.rows({ by, limit, ...range })
  const ahead = ledger.dayAhead()
  return {
    by,
    days,
    from,
    to,
    rows: rows.map((row) => ({ ...row, ...sharesOf(row) })),
    more,
    total: { ...total, ...sharesOf(total) },
    reserved: token === undefined ? spend.held() : { tokens: 0, micros: 0 },
    limits: budgetStates(ledger, config.limits, config.defaultAgent ?? 'default').filter(
      ({ scope }) => token === undefined || scope === `token:${token}`,
    ),
    dayAhead: ahead,
  }
}

function check({ days, by, limit }: Required<Omit<CostQuery, 'token'>>): void {
  const isWhole = (value: number, highest: number) => Number.isInteger(value) && value >= 1 && value <= highest
  const problems = [
    ...(isWhole(days, most.days) ? [] : [`days: ${days} must be a whole number from 1 to ${most.days}`]),
    ...(isWhole(limit, most.limit) ? [] : [`limit: ${limit} must be a whole number from 1 to ${most.limit}`]),
    ...(spendKeys.includes(by) ? [] : [`by: ${JSON.stringify(by)} is not one of ${spendKeys.join(', ')}`]),
  ]
  if (problems.length > 0) throw new FailureError('usage', problems)
}

function sharesOf({ inputTokens, cachedTokens, outputTokens, unsettledTokens }: Spend): Shares {
  const tokens = inputTokens + outputTokens + unsettledTokens
  return { tokens, cachedShare: cachedShare({ inputTokens, cachedInputTokens: cachedTokens }) }
}
