/**
 * Implements `approvals list | allow | deny | rules`: it answers questions of waiting turns from any terminal, and manages standing
 * approvals.
 */

import type { CliContext, CliSetup } from '../../../channels/terminal/context.ts'
import { differenceLines } from '../../../channels/terminal/history/kept-text.ts'
import { coloured, wantsColor } from '../../../channels/terminal/questions/coloured.ts'
import { isTerminal } from '../../../channels/terminal/tty.ts'
import { changeSetOf, openKeptChanges } from '../../../host/changes/kept-changes.ts'
import { applyLate, isAwaited, pendingSetOf } from '../../../host/changes/late-decision.ts'
import { patchText } from '../../../host/changes/patch-text.ts'
import { withMemory } from '../../../host/open/open-records.ts'
import { createRecord } from '../../../host/records/integrity/recovery.ts'
import { settleChanges } from '../../../host/records/integrity/settle-changes.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { count } from '../../../kit/count.ts'
import { didYouMean } from '../../../kit/did-you-mean.ts'
import { quote } from '../../../kit/text.ts'
import type { AlwaysRule, Approval, Approvals } from '../../../memory/approval-table.ts'
import type { Memory } from '../../../memory/memory.ts'
import { changeRuleTool, parseChangeRule, tellChangeRule } from '../../../security/changes/standing-changes.ts'
import type { Shown } from '../../../workspace/changes/contract.ts'
import type { Arguments, Command, Flags, Given } from '../../args/command.ts'
import { jsonFlag, limitOf20 } from '../../args/flags.ts'
import { CliExit, exitCodes } from '../../exit.ts'
import { printList } from '../../print-list.ts'

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
      const lines = found.map((approval) => linesOf(approval, Date.now()))
      printList(context, { items: found, json, lines, none: all ? 'nothing was asked yet' : 'nothing waits for an answer' })
    })
  },
} as const satisfies Command<typeof listFlags>

function linesOf({ id, state, expires, risk, reason, summary }: Approval, now: number): string {
  const seconds = Math.ceil((expires - now) / 1000)
  const left = state !== 'open' && state !== 'allowed' ? '' : seconds > 0 ? ` (${seconds} s left)` : ' (expired)'
  return `${id}  ${state}${left}  ${risk}\n  ${summary}\n  ${reason}`
}

export const show = {
  flags: jsonFlag,
  args: asked,
  examples: [['run_4q2fqk8fd4spk980/call_1', 'with the exact difference']],
  exits: [9],
  async run(context, { json = false }, { id }) {
    const setup = loadSetup(context)
    await withMemory(setup, async ({ approvals }) => {
      const approval = mustExist(approvals, id)
      const shown = approval.changes === 1 ? await pendingShown(setup, approval) : undefined
      const set = shown && changeSetOf(shown)
      if (json) return void context.process.stdout.write(`${JSON.stringify({ ...approval, ...(set ? { patch: patchText(set) } : {}) })}\n`)
      context.process.stdout.write(`${linesOf(approval, Date.now())}\n`)
      if (set) context.process.stdout.write(coloured(differenceLines(set), isTerminal(1) && wantsColor(context.env)))
      else if (approval.changes === 1) context.process.stderr.write('its changes are no longer kept\n')
    })
  },
} as const satisfies Command<typeof jsonFlag, typeof asked>

/** RUN/CALL names the question about the changes of that call when it is the one that is open. */
function mustExist(approvals: Approvals, id: string): Approval {
  const [found, aboutChanges] = [approvals.get(id), approvals.get(`changes:${id}`)]
  if (aboutChanges && (!found || (found.state !== 'open' && aboutChanges.state === 'open'))) return aboutChanges
  if (found) return found
  const near = didYouMean(
    id,
    approvals.list().map((each) => each.id),
  )
  throw new CliExit(exitCodes.error, `error: there is no approval ${quote(id)}${near}; see: braidclaw approvals list`)
}

async function pendingShown(setup: CliSetup, approval: Approval): Promise<Shown | undefined> {
  const store = await openKeptChanges(setup)
  const set = pendingSetOf(store, approval)
  return set && store.show(set.id)
}

export const allow = {
  flags: decisionFlags,
  args: asked,
  examples: [
    ['run_4q2fqk8fd4spk980/call_1', 'a waiting turn goes on at once'],
    ['run_4q2fqk8fd4spk980/call_1 --json', 'applies what the command changed, also when nobody waits any more'],
  ],
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
export async function decide(context: CliContext, { id: given, allowed, note, json = false }: Decided): Promise<void> {
  const setup = loadSetup(context)
  await withMemory(setup, async (memory) => {
    const { approvals } = memory
    const { id } = mustExist(approvals, given)
    const said = note === undefined ? {} : { note: setup.redactor.text(note) }
    const answer = approvals.decide({ id, allow: allowed, by: 'operator', ...said })
    if (!answer.ok) throw new CliExit(exitCodes.error, `error: ${answer.reason}; see: braidclaw approvals list`)
    const approval = approvals.get(id) ?? mustExist(approvals, id)
    setup.log('info', allowed ? 'tool approved' : 'tool denied', { approval: id, by: 'operator' })
    const awaited = approval.changes === 1 ? isAwaited(memory, approval) : 'yes'
    if (awaited === 'crashed') await settleChanges(setup, createRecord({ ...setup, redact: setup.redactor.json }, memory))
    const applied = awaited === 'yes' ? undefined : await settleLate(setup, { memory, approval, allowed })
    if (json) return void context.process.stdout.write(`${JSON.stringify({ ...approval, ...(applied ? { applied } : {}) })}\n`)
    const what = applied ? `applied: ${count(applied.count, 'path')}` : allowed ? 'allowed, once' : 'denied'
    context.process.stdout.write(`${what}: ${approval.summary}\n`)
  })
}

type Late = { readonly memory: Memory; readonly approval: Approval; readonly allowed: boolean }

/** Nobody waits for this answer: the changes are applied or forgotten here. */
async function settleLate(setup: CliSetup, { memory, approval, allowed }: Late): Promise<{ readonly count: number } | undefined> {
  const store = await openKeptChanges(setup)
  if (!allowed) {
    const set = pendingSetOf(store, approval)
    if (set) await store.drop(set.id)
    return undefined
  }
  const record = createRecord({ ...setup, redact: setup.redactor.json }, memory)
  const applied = await applyLate({ record, store, approval })
  if (!applied.ok) throw new CliExit(exitCodes.error, `error: allowed, but not applied: ${applied.message}`)
  return applied
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
      const lines = rules.map(
        ({ id, tool, allows, addedBy, addedAt }) =>
          `${String(id).padStart(4)}  ${tool}  ${allows}  (by ${addedBy}, ${new Date(addedAt).toISOString().slice(0, 16)})`,
      )
      printList(context, { items: rules, json, lines, none: 'nothing is always allowed' })
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
