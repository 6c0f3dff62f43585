/** Implements `cost`: it shows what the model calls of this home have cost, against its limits. */

import type { CliContext } from '../../../channels/terminal/context.ts'
import { type BudgetState, budgetStates, shown } from '../../../host/access/cost/budget.ts'
import { type CostReport, type CostRow, costOf } from '../../../host/access/cost/cost.ts'
import { withMemory } from '../../../host/open/open-records.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { count, visible } from '../../../kit/text.ts'
import { createBudgetLedger } from '../../../memory/spend/budget-ledger.ts'
import { type Spend, spendKeys } from '../../../memory/spend/spend.ts'
import { command, type Flags } from '../../args/command.ts'
import { jsonFlag } from '../../args/turn-flags.ts'
import { printList, printOne } from '../../print-list.ts'
import { table } from '../control/text/table.ts'

const flags = {
  days: { type: 'whole', min: 1, max: 3660, unit: 'days', default: 30, about: 'How many days, today included' },
  by: { type: 'choice', values: spendKeys, about: 'What each line adds up (default: day)' },
  limit: { type: 'whole', min: 1, max: 10_000, unit: 'lines', default: 50, about: 'The most lines; the total counts all' },
  ...jsonFlag,
} as const satisfies Flags

export const cost = command({
  flags,
  examples: [
    ['', 'each of the last thirty days, the total, and what is left of each limit'],
    ['--days 1 --by model', 'today, by model'],
    ['--by conversation --limit 5', 'the five conversations that cost most'],
    ['--json', 'for scripts; money in millionths of a dollar'],
  ],
  exits: [9],
  async run(context, { days, by, limit, json = false }) {
    const setup = loadSetup(context)
    await withMemory(setup, async (memory) => {
      const report = await costOf(memory, setup, { days, limit, by })
      const lines = [...tableOf(report), ...notesOf(report), ...report.limits.map(budgetLine)]
      printOne(context, { json, value: report, text: lines.map((line) => `${line}\n`).join('') })
      if (!json) warnOfClock(context, report.dayAhead)
    })
  },
})

const heads = ['calls', 'tokens in', 'cached', 'hit', 'tokens out', 'unsettled', 'cost'] as const

function tableOf({ by, rows, more, total, from, to }: CostReport): string[] {
  if (rows.length === 0) return [`no model call from ${from} to ${to}`]
  const lines = [
    ...rows.map((row) => [nameOf(row), ...cellsOf(row)]),
    ...(more > 0 ? [[`(and ${more} more)`, ...heads.map(() => '')]] : []),
    ['total', ...cellsOf(total)],
  ]
  return table(lines, { heads: [by, ...heads], right: heads.map((_, at) => at + 1) })
}

function nameOf({ key, title }: CostRow): string {
  const name = key === '' ? '(unknown)' : visible(key)
  return title === undefined ? name : `${name} ${visible(title).slice(0, 40)}`
}

function cellsOf(spend: CostReport['total']): string[] {
  const { calls, inputTokens, cachedTokens, cachedShare, outputTokens, unsettledTokens } = spend
  const counts = [calls, inputTokens, cachedTokens, outputTokens, unsettledTokens].map((value) => value.toLocaleString('en'))
  return [...counts.toSpliced(3, 0, `${Math.round(cachedShare * 100)}%`), money(spend)]
}

/** `$0.0021`; with "+" what is known, where some calls have no known price; "unknown" where none has. */
function money({ micros, unpricedCalls, lostCalls, calls }: Spend): string {
  if (unpricedCalls > 0 && unpricedCalls >= calls) return 'unknown'
  return `$${(micros / 1_000_000).toFixed(4)}${unpricedCalls + lostCalls > 0 ? '+' : ''}`
}

/** Says what the figures leave out or only estimate. */
function notesOf({ total, reserved, from, to, days }: CostReport): string[] {
  const { unpricedCalls, lostCalls, estimatedCalls, unsettledCalls } = total
  const notes = [
    unpricedCalls > 0 &&
      `${count(unpricedCalls, 'call')} without a known price: not part of the cost (docs/cost.md says how to set prices)`,
    unsettledCalls > 0 &&
      `${count(unsettledCalls, 'call')} never settled (killed, cancelled or broken off): all that was reserved counts as spent`,
    lostCalls > 0 && `${count(lostCalls, 'call')} broken off, with nothing reserved: what they used is not known and not part of the sums`,
    estimatedCalls > 0 && `${count(estimatedCalls, 'call')} whose tokens the provider did not count: they are estimated`,
    reserved.tokens > 0 && `${reserved.tokens.toLocaleString('en')} tokens are reserved by calls under way`,
  ]
  const zone = `${days === 1 ? to : `${from} to ${to}`}, days in UTC${localStart()}`
  return [zone, ...notes.flatMap((note) => (note ? [note] : []))]
}

/** A day in UTC begins at another hour where most people live. */
function localStart(): string {
  const begins = new Date(new Date().toISOString().slice(0, 10))
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone
  const time = begins.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' })
  return time === '00:00' ? '' : ` (a day begins at ${time} in ${zone})`
}

/** Implements `budget`: it shows what is spent and reserved of each budget, and when each is free again. */
export const budget = command({
  flags: jsonFlag,
  examples: [
    ['', 'the home, its channels, agents and conversations: spent, reserved, limit'],
    ['--json', 'for scripts'],
  ],
  exits: [9],
  async run(context, { json = false }) {
    const setup = loadSetup(context)
    await withMemory(setup, async (memory) => {
      const ledger = createBudgetLedger(memory.store, Date.now)
      const items = budgetStates(ledger, setup.config.limits, setup.config.defaultAgent ?? 'default')
      const none = 'no budget is set; limits.daily_usd, limits.daily_tokens and others do ("braidclaw config show")'
      printList(context, { items, json, lines: items.map(budgetLine), none })
      if (!json) warnOfClock(context, ledger.dayAhead())
    })
  },
})

/** `day`: one that the clock of this computer has not reached, although calls were counted on it. */
function warnOfClock({ process: { stderr } }: CliContext, day: string | undefined): void {
  if (day !== undefined) stderr.write(`warn: the clock is behind: calls were counted on ${day}; they count today as well\n`)
}

function budgetLine({ scope, setting, unit, spent, reserved, limit, left, freeAt }: BudgetState): string {
  const held = reserved > 0 ? `, ${shown(reserved, unit)} reserved` : ''
  const until = freeAt === undefined ? '' : `, free again at ${freeAt}`
  return `${visible(scope)}  ${shown(spent, unit)} of ${shown(limit, unit)} spent${held}, ${shown(left, unit)} left${until}  (${setting})`
}
