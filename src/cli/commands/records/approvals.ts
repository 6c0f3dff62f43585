/**
 * Implements `approvals list | allow | deny | rules`: it answers questions of waiting turns from any terminal, and manages standing
 * approvals.
 */

import type { CliContext } from '../../../channels/terminal/context.ts'
import { withMemory } from '../../../host/open-records.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import type { AlwaysRule, Approval } from '../../../memory/approval-table.ts'
import { changeRuleTool, parseChangeRule, tellChangeRule } from '../../../security/changes/standing-changes.ts'
import type { Arguments, Command, Flags, Given } from '../../args/command.ts'
import { jsonFlag, limitOf20 } from '../../args/flags.ts'
import { CliExit, exitCodes } from '../../exit.ts'

const listFlags = {
  ...limitOf20,
  all: { type: 'boolean', about: 'Also those that are answered, used or expired' },
  ...jsonFlag,
} as const satisfies Flags
const decisionFlags = {
  note: { type: 'text', about: 'Why; kept, and shown to the model when it is a no' },
  ...jsonFlag,
} as const satisfies Flags
const asked = { id: { type: 'text', about: 'As "approvals list" shows it' } } as const satisfies Arguments
const ruleArgs = { id: { type: 'whole', about: 'As "approvals rules list" shows it' } } as const satisfies Arguments

export const list = {
  flags: listFlags,
  examples: [
    ['', 'what is asked, and until when'],
    ['--all', 'what was answered, too'],
  ],
  exits: [9],
  async run(context, { limit, all = false, json = false }) {
    await withMemory(loadSetup(context), ({ approvals }) => {
      const found = approvals.list({ limit, ...(all ? {} : { state: 'open' as const }) })
      if (json) return context.process.stdout.write(`${JSON.stringify(found)}\n`)
      if (found.length === 0) context.process.stderr.write(all ? 'nothing was asked yet\n' : 'nothing waits for an answer\n')
      for (const approval of found) context.process.stdout.write(lineOf(approval, Date.now()))
    })
  },
} as const satisfies Command<typeof listFlags>

function lineOf({ id, state, expires, risk, reason, summary }: Approval, now: number): string {
  const seconds = Math.ceil((expires - now) / 1000)
  const left = state !== 'open' && state !== 'allowed' ? '' : seconds > 0 ? ` (${seconds} s left)` : ' (expired)'
  return `${id}  ${state}${left}  ${risk}\n  ${summary}\n  ${reason}\n`
}

export const allow = {
  flags: decisionFlags,
  args: asked,
  examples: [['run_4q2fqk8fd4spk980/call_1', 'a waiting turn goes on at once']],
  exits: [9],
  run(context, flags, { id }) {
    return decide(context, { ...flags, id, allowed: true })
  },
} as const satisfies Command<typeof decisionFlags, typeof asked>

export const deny = {
  flags: decisionFlags,
  args: asked,
  examples: [['run_4q2fqk8fd4spk980/call_1 --note "not on a Friday"', 'and why']],
  exits: [9],
  run(context, flags, { id }) {
    return decide(context, { ...flags, id, allowed: false })
  },
} as const satisfies Command<typeof decisionFlags, typeof asked>

type Decided = Given<typeof decisionFlags> & { readonly id: string; readonly allowed: boolean }

/** Refuses a late answer, a second answer and an answer to an unknown question, with the reason. */
async function decide(context: CliContext, { id, allowed, note, json = false }: Decided): Promise<void> {
  const setup = loadSetup(context)
  await withMemory(setup, ({ approvals }) => {
    const said = note === undefined ? {} : { note: setup.redactor.text(note) }
    const answer = approvals.decide({ id, allow: allowed, by: 'operator', ...said })
    if (!answer.ok) throw new CliExit(exitCodes.error, `error: ${answer.reason}; see: braidclaw approvals list`)
    const approval = approvals.get(id)
    setup.log('info', allowed ? 'tool approved' : 'tool denied', { approval: id, by: 'operator' })
    if (json) context.process.stdout.write(`${JSON.stringify(approval)}\n`)
    else context.process.stdout.write(`${allowed ? 'allowed, once' : 'denied'}: ${approval?.summary ?? id}\n`)
  })
}

export const listRules = {
  flags: jsonFlag,
  examples: [
    ['', 'what "a" was said to'],
    ['--json', 'for scripts'],
  ],
  exits: [9],
  async run(context, { json = false }) {
    await withMemory(loadSetup(context), ({ approvals }) => {
      const rules = approvals.rules().map((rule) => ({ ...rule, allows: wordsOf(rule) }))
      if (json) return context.process.stdout.write(`${JSON.stringify(rules)}\n`)
      if (rules.length === 0) context.process.stderr.write('nothing is always allowed\n')
      for (const { id, tool, allows, addedBy, addedAt } of rules) {
        context.process.stdout.write(
          `${String(id).padStart(4)}  ${tool}  ${allows}  (by ${addedBy}, ${new Date(addedAt).toISOString().slice(0, 16)})\n`,
        )
      }
    })
  },
} as const satisfies Command<typeof jsonFlag>

export const revokeRule = {
  flags: jsonFlag,
  args: ruleArgs,
  examples: [['3', 'the third rule']],
  exits: [9],
  async run(context, { json = false }, { id }) {
    await withMemory(loadSetup(context), ({ approvals }) => {
      const rule = approvals.rules().find((each) => each.id === id)
      if (!approvals.revokeRule(id) || !rule)
        throw new CliExit(exitCodes.error, `error: there is no rule ${id}; see: braidclaw approvals rules list`)
      context.process.stdout.write(json ? `${JSON.stringify({ revoked: rule })}\n` : `revoked: ${wordsOf(rule)} is asked about again\n`)
    })
  },
} as const satisfies Command<typeof jsonFlag, typeof ruleArgs>

/** The scope is the JSON of an executable and its sub-command, or of a command and the paths it may change; other scopes are shown unchanged. */
function wordsOf({ tool, scope }: AlwaysRule): string {
  const changes = tool === changeRuleTool ? parseChangeRule(scope) : undefined
  if (changes) return tellChangeRule(changes)
  try {
    const words: unknown = JSON.parse(scope)
    return Array.isArray(words) ? words.join(' ') : scope
  } catch {
    return scope
  }
}
