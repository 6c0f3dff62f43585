/** Implements `budget`: it shows what is spent and reserved of each budget, and when each is free again. */

import { type Budget, budgetsOf, freeAt, shown } from '../../../host/cost/budget.ts'
import { withMemory } from '../../../host/open-records.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { visible } from '../../../kit/text.ts'
import type { Amount, BudgetLedger } from '../../../memory/spend/budget-ledger.ts'
import type { Command } from '../../args/command.ts'
import { jsonFlag } from '../../args/flags.ts'

export const budget = {
  flags: jsonFlag,
  examples: [
    ['', 'the home, its agents, its conversations: spent, reserved, limit'],
    ['--json', 'for scripts'],
  ],
  exits: [9],
  async run(context, { json = false }) {
    const setup = loadSetup(context)
    const { stdout, stderr } = context.process
    await withMemory(setup, async (memory) => {
      const ledger = await memory.budget()
      const rows = scopesIn(ledger, setup.config.defaultAgent ?? 'default').flatMap((payer) =>
        rowsOf(ledger, budgetsOf(setup.config.limits, payer)),
      )
      const unique = [...new Map(rows.map((row) => [`${row.scope} ${row.unit}`, row])).values()]
      if (json) return stdout.write(`${JSON.stringify(unique)}\n`)
      if (unique.length === 0)
        stderr.write('no budget is set; limits.daily_usd, limits.daily_tokens and others do ("braidclaw config show")\n')
      for (const row of unique) stdout.write(`${lineOf(row)}\n`)
      const ahead = ledger.dayAhead()
      if (ahead !== undefined) stderr.write(`warn: the clock is behind: calls were counted on ${ahead}; they count today as well\n`)
    })
  },
} as const satisfies Command<typeof jsonFlag>

type Row = {
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

/** Returns every agent and conversation with counted calls in the last week. */
function scopesIn(ledger: BudgetLedger, agent: string): { readonly agent: string; readonly conversationId: string }[] {
  const named = (prefix: string) => ledger.scopes(prefix).map((scope) => scope.slice(prefix.length))
  const [agents, conversations] = [[agent, ...named('agent:')], named('conversation:')]
  return [
    ...agents.map((each) => ({ agent: each, conversationId: '' })),
    ...conversations.map((conversationId) => ({ agent, conversationId })),
  ]
}

function rowsOf(ledger: BudgetLedger, budgets: readonly Budget[]): Row[] {
  return budgets
    .filter(({ scope }) => scope !== 'conversation:')
    .flatMap((budget) => [rowOf(ledger, budget, 'tokens'), rowOf(ledger, budget, 'micros')])
    .filter((row) => row !== undefined)
}

function rowOf(ledger: BudgetLedger, budget: Budget, unit: keyof Amount): Row | undefined {
  const limit = budget[unit]
  if (limit === undefined) return undefined
  const { scope, window, tokensKey, microsKey } = budget
  const state = ledger.state(budget)
  const [spent, reserved] = [state.spent[unit], state.reserved[unit]]
  const setting = unit === 'tokens' ? tokensKey : microsKey
  const frees = window === 'day' ? { freeAt: freeAt(Date.now()) } : {}
  return { scope, setting, unit, spent, reserved, limit, left: Math.max(0, limit - spent - reserved), ...frees }
}

function lineOf({ scope, setting, unit, spent, reserved, limit, left, freeAt: frees }: Row): string {
  const held = reserved > 0 ? `, ${shown(reserved, unit)} reserved` : ''
  const until = frees === undefined ? '' : `, anew at ${frees}`
  return `${visible(scope)}  ${shown(spent, unit)} of ${shown(limit, unit)} spent${held}, ${shown(left, unit)} left${until}  (${setting})`
}
