/** `approvals list | allow | deny | rules`: questions of waiting turns, answered from any terminal; and the standing answers. */

import type { CliContext } from '../../../channels/terminal/context.ts'
import { withMemory } from '../../../host/integrity/recovery.ts'
import { setUp } from '../../../host/setup/setup.ts'
import type { AlwaysRule, Approval } from '../../../memory/approval-table.ts'
import type { Json } from '../../args/flags.ts'
import { CliExit, exitCodes } from '../../exit.ts'
import type { ApprovalListFlags, DecisionFlags } from '../../routes/types.ts'

export async function list(this: CliContext, { limit, all = false, json = false }: ApprovalListFlags): Promise<void> {
  await withMemory(setUp(this), ({ approvals }) => {
    const found = approvals.list({ limit, ...(all ? {} : { state: 'open' as const }) })
    if (json) return this.process.stdout.write(`${JSON.stringify(found)}\n`)
    if (found.length === 0) this.process.stderr.write(all ? 'nothing was asked yet\n' : 'nothing waits for an answer\n')
    for (const approval of found) this.process.stdout.write(lineOf(approval, Date.now()))
  })
}

function lineOf({ id, state, expires, risk, reason, summary }: Approval, now: number): string {
  const seconds = Math.ceil((expires - now) / 1000)
  const left = state !== 'open' && state !== 'allowed' ? '' : seconds > 0 ? ` (${seconds} s left)` : ' (expired)'
  return `${id}  ${state}${left}  ${risk}\n  ${summary}\n  ${reason}\n`
}

export function allow(this: CliContext, flags: DecisionFlags, id: string): Promise<void> {
  return decide(this, { ...flags, id, allowed: true })
}

export function deny(this: CliContext, flags: DecisionFlags, id: string): Promise<void> {
  return decide(this, { ...flags, id, allowed: false })
}

type Decided = DecisionFlags & { readonly id: string; readonly allowed: boolean }

/** A late answer, a second one and one to a question that nobody asked are refused with the reason. */
async function decide(context: CliContext, { id, allowed, note, json = false }: Decided): Promise<void> {
  const setup = setUp(context)
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

export async function listRules(this: CliContext, { json = false }: Json): Promise<void> {
  await withMemory(setUp(this), ({ approvals }) => {
    const rules = approvals.rules().map((rule) => ({ ...rule, allows: wordsOf(rule) }))
    if (json) return this.process.stdout.write(`${JSON.stringify(rules)}\n`)
    if (rules.length === 0) this.process.stderr.write('nothing is always allowed\n')
    for (const { id, tool, allows, addedBy, addedAt } of rules) {
      this.process.stdout.write(
        `${String(id).padStart(4)}  ${tool}  ${allows}  (by ${addedBy}, ${new Date(addedAt).toISOString().slice(0, 16)})\n`,
      )
    }
  })
}

export async function revokeRule(this: CliContext, { json = false }: Json, id: number): Promise<void> {
  await withMemory(setUp(this), ({ approvals }) => {
    const rule = approvals.rules().find((each) => each.id === id)
    if (!approvals.revokeRule(id) || !rule)
      throw new CliExit(exitCodes.error, `error: there is no rule ${id}; see: braidclaw approvals rules list`)
    this.process.stdout.write(json ? `${JSON.stringify({ revoked: rule })}\n` : `revoked: ${wordsOf(rule)} is asked about again\n`)
  })
}

/** The scope is the JSON of an executable and its sub-command; anything else is shown as it is. */
function wordsOf({ scope }: AlwaysRule): string {
  try {
    const words: unknown = JSON.parse(scope)
    return Array.isArray(words) ? words.join(' ') : scope
  } catch {
    return scope
  }
}
