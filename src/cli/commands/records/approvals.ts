/**
 * Implements `approvals list | allow | deny | rules`: it answers questions of waiting turns from any terminal, and manages standing
 * approvals.
 */

import type { CliContext } from '../../../channels/terminal/context.ts'
import { coloured, wantsColor } from '../../../channels/terminal/printer.ts'
import { differenceLines } from '../../../channels/terminal/slash/past-changes.ts'
import { isTerminal } from '../../../channels/terminal/tty.ts'
import { patchText } from '../../../host/changes/patch-text.ts'
import { withRecords } from '../../../host/open/open-records.ts'
import { approvalRecords, existing, withChanges } from '../../../host/records/approvals.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { count } from '../../../kit/text.ts'
import type { Approval } from '../../../memory/approval-table.ts'
import { type Arguments, type Command, command, type Example, type Flags, type Given } from '../../args/command.ts'
import { jsonFlag, limitOf20 } from '../../args/turn-flags.ts'
import { printList, printOne } from '../../print-list.ts'

const decisionFlags = {
  note: { type: 'text', about: 'Why; kept, and shown to the model when it is a no' },
  ...jsonFlag,
} as const satisfies Flags
const asked = { id: { type: 'text', about: 'As "approvals list" shows it' } } as const satisfies Arguments

export const list = command({
  flags: { ...limitOf20, all: { type: 'boolean', about: 'Also those that are answered, used or expired' }, ...jsonFlag },
  examples: [
    ['', 'what is asked, and until when'],
    ['--all', 'what was answered, too'],
  ],
  exits: [9],
  async run(context, { limit, all = false, json = false }) {
    await withRecords(loadSetup(context), (base) => {
      const found = approvalRecords(base).list({ limit, all })
      const lines = found.map((approval) => linesOf(approval, Date.now()))
      printList(context, { items: found, json, lines, none: all ? 'nothing was asked yet' : 'nothing waits for an answer' })
    })
  },
})

function linesOf({ id, state, expires, risk, reason, summary }: Approval, now: number): string {
  const seconds = Math.ceil((expires - now) / 1000)
  const left = state !== 'open' && state !== 'allowed' ? '' : seconds > 0 ? ` (${seconds} s left)` : ' (expired)'
  return `${id}  ${state}${left}  ${risk}\n  ${summary}\n  ${reason}`
}

export const show = command({
  flags: jsonFlag,
  args: asked,
  examples: [['run_4q2fqk8fd4spk980/call_1', 'with the exact difference']],
  exits: [9],
  async run(context, { json = false }, { id }) {
    await withRecords(loadSetup(context), async (base) => {
      const { set, ...approval } = await withChanges(base, existing(base, id))
      if (json) return void context.process.stdout.write(`${JSON.stringify({ ...approval, ...(set ? { patch: patchText(set) } : {}) })}\n`)
      context.process.stdout.write(`${linesOf(approval, Date.now())}\n`)
      if (set) context.process.stdout.write(coloured(differenceLines(set), isTerminal(1) && wantsColor(context.env)))
      else if (approval.changes === 1) context.process.stderr.write('its changes are no longer kept\n')
    })
  },
})

function deciding(allowed: boolean, examples: readonly Example[]) {
  return {
    flags: decisionFlags,
    args: asked,
    examples,
    exits: [9],
    run: (context, flags, { id }) => decide(context, { ...flags, id, allowed }),
  } as const satisfies Command<typeof decisionFlags, typeof asked>
}

export const allow = deciding(true, [
  ['run_4q2fqk8fd4spk980/call_1', 'a waiting turn continues at once'],
  ['run_4q2fqk8fd4spk980/call_1 --json', 'applies what the command changed, also when nobody waits any more'],
])

export const deny = deciding(false, [['run_4q2fqk8fd4spk980/call_1 --note "not on a Friday"', 'and why']])

type Decided = Given<typeof decisionFlags> & { readonly id: string; readonly allowed: boolean }

/** Refuses a late answer, a second answer and an answer to an unknown question, with the reason. */
export async function decide(context: CliContext, { id, allowed, note, json }: Decided): Promise<void> {
  await withRecords(loadSetup(context), async (base) => {
    const decided = await approvalRecords(base).decide(id, { allow: allowed, by: 'operator', note })
    const { applied, summary } = decided
    const what = applied ? `applied: ${count(applied.count, 'path')}` : allowed ? 'allowed, once' : 'denied'
    printOne(context, { json, value: decided, text: `${what}: ${summary}\n` })
  })
}

export const listRules = command({
  flags: jsonFlag,
  examples: [
    ['', 'what "a" was said to'],
    ['--json', 'for scripts'],
  ],
  exits: [9],
  async run(context, { json = false }) {
    await withRecords(loadSetup(context), (base) => {
      const rules = approvalRecords(base).rules()
      const lines = rules.map(
        ({ id, tool, allows, addedBy, addedAt, altered }) =>
          `${String(id).padStart(4)}  ${tool}  ${allows}  (by ${addedBy}, ${new Date(addedAt).toISOString().slice(0, 16)})${altered ? '  altered: it allows nothing; revoke it' : ''}`,
      )
      printList(context, { items: rules, json, lines, none: 'nothing is always allowed' })
    })
  },
})

export const revokeRule = command({
  flags: jsonFlag,
  args: { id: { type: 'whole', about: 'As "approvals rules list" shows it' } },
  examples: [['3', 'the third rule']],
  exits: [9],
  async run(context, { json = false }, { id }) {
    await withRecords(loadSetup(context), (base) => {
      const { allows, ...rule } = approvalRecords(base).revokeRule(id)
      printOne(context, { json, value: { revoked: rule }, text: `revoked: ${allows} is asked about again\n` })
    })
  },
})
