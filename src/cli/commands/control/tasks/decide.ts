/** Implements `control approve | deny | revise`, and the same below `control task`. */

import type { CliContext } from '../../../../channels/terminal/context.ts'
import type { Approval, DecisionRequest } from '../../../../control/contract/approval-shapes.ts'
import type { Arguments, Command, Example, Flags } from '../../../args/command.ts'
import { commandError, usageError } from '../../../exit.ts'
import { controlExits, controlFlags, noteFlag } from '../connect/control-flags.ts'
import { proposeApprovals } from '../connect/control-names.ts'
import { idOf } from '../connect/ids.ts'
import { show } from '../connect/screen.ts'
import { type Control, withControl } from '../connect/with-control.ts'
import { oneLine } from '../text/table.ts'

const flags = { ...noteFlag, ...controlFlags } as const satisfies Flags
const args = {
  id: { type: 'text', about: 'The approval, such as APPR-042, or the task that waits for one', complete: proposeApprovals },
} as const satisfies Arguments

function deciding(decision: DecisionRequest['decision'], examples: readonly Example[]) {
  return {
    flags,
    args,
    examples,
    exits: controlExits,
    async run(context, given, { id }) {
      const { note = '', json = false } = given
      await withControl(context, given, async (control) => {
        const approval = await control.approvals.decide(await approvalIdOf(control, id), { decision, note })
        show(context, { json, value: approval, text: `${told(approval)}\n` })
        remind(context, approval)
      })
    },
  } as const satisfies Command<typeof flags, typeof args>
}

export const approve = deciding('approve', [
  ['APPR-042', 'once, for exactly the operation that "control approvals show" prints'],
  ['TASK-002', 'the approval that this task waits for'],
])
export const deny = deciding('reject', [
  ['APPR-042', 'the task goes on without it'],
  ['APPR-042 --note "not on a Friday"', 'the agent is told why'],
])
export const revise = deciding('revise', [['APPR-042 --note "only the table sessions"', 'the agent is asked to change its plan']])

/** @throws CliExit 2 when the task waits for no approval, or for several */
async function approvalIdOf(control: Control, typed: string): Promise<string> {
  if (!/^task-/i.test(typed)) return idOf('approval', typed)
  const id = idOf('task', typed)
  const { approvals } = await control.approvals.list({ task_id: id, state: 'pending', limit: 50 })
  const [first, second] = approvals
  if (first === undefined) throw commandError(`${id} waits for no approval; see: braidclaw control task show ${id}`)
  if (second === undefined) return first.approval_id
  const ids = approvals.map((each) => `${each.approval_id} (${oneLine(each.operation)})`).join(', ')
  throw usageError(`${id} waits for ${approvals.length} approvals; name one: ${ids}`)
}

function told({ approval_id: id, state, operation, task_id: task }: Approval): string {
  return `${id}  ${state}  ${oneLine(operation)}${task === null ? '' : `  (${task})`}`
}

function remind({ process: { stderr } }: CliContext, { state, note }: Approval): void {
  if (state === 'revise' && !note) stderr.write('note: without --note the agent is not told what to change\n')
}
