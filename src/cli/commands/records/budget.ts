/** Implements `budget`: it shows what is spent and reserved of each budget, and when each is free again. */

import { shown } from '../../../host/cost/budget.ts'
import { type BudgetState, budgetStates } from '../../../host/cost/budget-states.ts'
import { withMemory } from '../../../host/open/open-records.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { visible } from '../../../kit/text.ts'
import type { Command } from '../../args/command.ts'
import { jsonFlag } from '../../args/flags.ts'

export const budget = {
  flags: jsonFlag,
  examples: [
    ['', 'the home, its channels, agents and conversations: spent, reserved, limit'],
    ['--json', 'for scripts'],
  ],
  exits: [9],
  async run(context, { json = false }) {
    const setup = loadSetup(context)
    const { stdout, stderr } = context.process
    await withMemory(setup, async (memory) => {
      const ledger = await memory.budget()
      const states = budgetStates(ledger, setup.config.limits, setup.config.defaultAgent ?? 'default')
      if (json) return stdout.write(`${JSON.stringify(states)}\n`)
      if (states.length === 0)
        stderr.write('no budget is set; limits.daily_usd, limits.daily_tokens and others do ("braidclaw config show")\n')
      for (const state of states) stdout.write(`${budgetLine(state)}\n`)
      const ahead = ledger.dayAhead()
      if (ahead !== undefined) stderr.write(`warn: the clock is behind: calls were counted on ${ahead}; they count today as well\n`)
    })
  },
} as const satisfies Command<typeof jsonFlag>

export function budgetLine({ scope, setting, unit, spent, reserved, limit, left, freeAt }: BudgetState): string {
  const held = reserved > 0 ? `, ${shown(reserved, unit)} reserved` : ''
  const until = freeAt === undefined ? '' : `, anew at ${freeAt}`
  return `${visible(scope)}  ${shown(spent, unit)} of ${shown(limit, unit)} spent${held}, ${shown(left, unit)} left${until}  (${setting})`
}
