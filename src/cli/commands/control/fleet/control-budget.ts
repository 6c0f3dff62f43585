/** Implements `control budget show | set`. */

import type { Budget, BudgetPatch } from '../../../../control/contract/fleet-shapes.ts'
import type { Flags, Given } from '../../../args/command.ts'
import { usageError } from '../../../exit.ts'
import { printOne } from '../../../print-list.ts'
import { namedTokens, tokensOf, zoneOf } from '../connect/argument-values.ts'
import { controlCommand, controlFlags, present } from '../connect/control-flags.ts'
import { terminalWidth } from '../connect/screen.ts'
import type { Control } from '../connect/with-control.ts'
import { budgetText } from '../text/control-text.ts'

export const show = controlCommand({
  examples: [
    ['', 'limit, spent, reserved and left: all, each role, each agent'],
    ['--json', 'for scripts; with the last 30 days'],
  ],
  async run({ context, control, json }) {
    const budget = await control.budget.get()
    printOne(context, { json, value: budget, text: pageOf(budget) })
  },
})

const setFlags = {
  daily: { type: 'text', about: 'Tokens that all may spend a day: 100000, 100k, 2M, or none for no limit' },
  role: { type: 'text', short: 'r', many: true, about: 'NAME=TOKENS a day for a role, or NAME=none; other roles stay as they are' },
  agent: { type: 'text', many: true, about: 'NAME=TOKENS a day for an agent, or NAME=none' },
  zone: { type: 'text', about: 'The time zone in which a day begins, like Europe/Ljubljana' },
  ...controlFlags,
} as const satisfies Flags

export const set = controlCommand({
  flags: setFlags,
  examples: [
    ['--daily 100k --role orchestrator=80k --role sysadmin=10k --zone Europe/Ljubljana', 'a limit for all, and for two roles'],
    ['--daily none', 'no limit for all; those of roles and agents stay'],
    ['--agent db-admin=5000', 'a limit for one agent'],
  ],
  details: () =>
    'What a role spends is part of what all spend. A limit below what is spent already stops new work until the next day begins.',
  async run({ context, control, json }, given) {
    const agents = (given.agent ?? []).map((text) => namedTokens('--agent', text))
    const change = changeOf(context.env, given)
    if (Object.keys(change).length === 0 && agents.length === 0)
      throw usageError('nothing to set; name a limit, such as --daily 100k or --role sysadmin=5000')
    for (const [id, daily] of agents) await control.fleet.edit(id, { daily_tokens: daily })
    const budget = await changed(control, change)
    printOne(context, { json, value: budget, text: pageOf(budget) })
  },
})

type BudgetChange = Omit<BudgetPatch, 'allocation'> & { readonly roles?: readonly (readonly [string, number | null])[] }

function changeOf(env: { readonly TZ?: string }, { daily, role, zone }: Given<typeof setFlags>): BudgetChange {
  return present({
    daily_tokens: daily === undefined ? undefined : tokensOf('--daily', daily),
    timezone: zone === undefined ? undefined : zoneOf(zone, env, '--zone'),
    roles: role?.map((text) => namedTokens('--role', text)),
  })
}

/** Sets the budget. The control plane stores the allocation as a whole, so the limits of the other roles are sent too. */
async function changed(control: Control, { roles, ...patch }: BudgetChange): Promise<Budget> {
  if (roles === undefined) return Object.keys(patch).length === 0 ? control.budget.get() : control.budget.set(patch)
  const { allocation } = await control.budget.get()
  const merged = new Map<string, number | null>([...Object.entries(allocation), ...roles])
  const limits = [...merged].filter((entry): entry is [string, number] => entry[1] !== null)
  return control.budget.set({ ...patch, allocation: Object.fromEntries(limits) })
}

function pageOf(budget: Budget): string {
  return budgetText(budget, Date.now(), terminalWidth())
    .map((line) => `${line}\n`)
    .join('')
}
