/** Tells of each budget of a home what is spent and reserved, and when it is free again. */

import type { LimitsConfig } from '../../config/config.ts'
import type { Amount, BudgetLedger } from '../../memory/spend/budget-ledger.ts'
import { type Budget, budgetsOf, freeAt, type Payer } from './budget.ts'

export type BudgetState = {
  readonly scope: string
  readonly setting: string
  readonly unit: keyof Amount
  readonly spent: number
  readonly reserved: number
  readonly limit: number
  readonly left: number
  /** When the budget is free again; only for daily budgets. */
  readonly freeAt?: string
}

/** @param agent the agent that answers here, shown even when it has spent nothing */
export function budgetStates(ledger: BudgetLedger, limits: LimitsConfig, agent: string): readonly BudgetState[] {
  const all = payersIn(ledger, agent).flatMap((payer) => statesOf(ledger, budgetsOf(limits, payer)))
  return [...new Map(all.map((state) => [`${state.scope} ${state.unit}`, state])).values()]
}

/** Returns everyone with counted calls in the last week. */
function payersIn(ledger: BudgetLedger, agent: string): Payer[] {
  const nobody = { agent, conversationId: '', channel: '' }
  const named = (prefix: string) => ledger.scopes(prefix).map((scope) => scope.slice(prefix.length))
  return [
    nobody,
    ...named('agent:').map((each) => ({ ...nobody, agent: each })),
    ...named('channel:').map((channel) => ({ ...nobody, channel })),
    ...named('token:').map((token) => ({ ...nobody, token })),
    ...named('conversation:').map((conversationId) => ({ ...nobody, conversationId })),
  ]
}

function statesOf(ledger: BudgetLedger, budgets: readonly Budget[]): BudgetState[] {
  return budgets
    .filter(({ scope }) => scope !== 'conversation:')
    .flatMap((budget) => [stateOf(ledger, budget, 'tokens'), stateOf(ledger, budget, 'micros')])
    .filter((state) => state !== undefined)
}

function stateOf(ledger: BudgetLedger, budget: Budget, unit: keyof Amount): BudgetState | undefined {
  const limit = budget[unit]
  if (limit === undefined) return undefined
  const { scope, window, tokensKey, microsKey } = budget
  const state = ledger.state(budget)
  const [spent, reserved] = [state.spent[unit], state.reserved[unit]]
  const setting = unit === 'tokens' ? tokensKey : microsKey
  const frees = window === 'day' ? { freeAt: freeAt(Date.now()) } : {}
  return { scope, setting, unit, spent, reserved, limit, left: Math.max(0, limit - spent - reserved), ...frees }
}
