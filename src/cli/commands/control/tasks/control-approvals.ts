/** Implements `control approvals list | show` and `control approve | deny | revise`, which `control task` has too. */

import type { Approval, DecisionRequest } from '../../../../control/contract/activity-shapes.ts'
import { approvalStates } from '../../../../control/contract/state-names.ts'
import { visibleLines } from '../../../../kit/text.ts'
import type { Arguments, Example, Flags } from '../../../args/command.ts'
import { commandError, usageError } from '../../../exit.ts'
import { printList, printOne } from '../../../print-list.ts'
import { idOf } from '../connect/argument-values.ts'
import {
  controlCommand,
  controlFlags,
  noteFlag,
  present,
  proposeApprovals,
  proposeControlAgents,
  proposeTasks,
} from '../connect/control-flags.ts'
import { terminalWidth } from '../connect/screen.ts'
import type { Control } from '../connect/with-control.ts'
import { moment, tokensText, when } from '../text/control-text.ts'
import { oneLine, record, table } from '../text/table.ts'

const flags = { ...noteFlag, ...controlFlags } as const satisfies Flags
const args = {
  id: { type: 'text', about: 'The approval, such as APPR-042, or the task that waits for one', complete: proposeApprovals },
} as const satisfies Arguments

function deciding(decision: DecisionRequest['decision'], examples: readonly Example[]) {
  return controlCommand({
    flags,
    args,
    examples,
    async run({ context, control, json }, given, { id }) {
      const { note = '' } = given
      const approval = await control.approvals.decide(await approvalIdOf(control, id), { decision, note })
      printOne(context, { json, value: approval, text: `${approvalLine(approval)}\n` })
      if (approval.state === 'revise' && !approval.note)
        context.process.stderr.write('note: without --note the agent does not know what to change\n')
    },
  })
}

export const approve = deciding('approve', [
  ['APPR-042', 'once, for exactly the operation that "control approvals show" prints'],
  ['TASK-002', 'the approval that this task waits for'],
])
export const deny = deciding('reject', [
  ['APPR-042', 'the task continues without it'],
  ['APPR-042 --note "not on a Friday"', 'the agent sees the reason'],
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

function approvalLine({ approval_id: id, state, operation, task_id: task }: Approval): string {
  return `${id}  ${state}  ${oneLine(operation)}${task === null ? '' : `  (${task})`}`
}

export const list = controlCommand({
  flags: {
    state: { type: 'choice', values: approvalStates, about: 'Only in this state (default: pending)' },
    all: { type: 'boolean', about: 'In every state' },
    agent: { type: 'text', about: 'Only of this agent', complete: proposeControlAgents },
    task: { type: 'text', about: 'Only of this task', complete: proposeTasks },
    limit: { type: 'whole', min: 1, max: 200, default: 50, about: 'How many at most' },
    after: { type: 'text', about: 'Continue after this approval of the previous list' },
    ...controlFlags,
  },
  examples: [
    ['', 'what waits for an answer'],
    ['--all --agent git-admin', 'also what was answered'],
  ],
  async run({ context, control, json }, given) {
    const { state = 'pending', all = false, agent, task, limit, after } = given
    const query = present({
      state: all ? undefined : state,
      agent_id: agent,
      task_id: task && idOf('task', task),
      limit,
      after: after && idOf('approval', after),
    })
    const { approvals, next } = await control.approvals.list(query)
    const none = all ? 'no agent has asked for an approval' : `no approval is ${state}`
    printList(context, { items: approvals, json, lines: approvalLines(approvals, Date.now(), terminalWidth()), none })
    if (next !== null) context.process.stderr.write(`more: add --after ${next}\n`)
  },
})

export const show = controlCommand({
  args: { approval: { type: 'text', about: 'Its id, such as APPR-042', complete: proposeApprovals } },
  examples: [['APPR-042', 'exactly what is asked, by whom and why']],
  async run({ context, control, json }, _, { approval: id }) {
    const approval = await control.approvals.get(idOf('approval', id))
    printOne(context, { json, value: approval, text: approvalText(approval, Date.now()) })
  },
})

/** Prints approvals: the questions of agents that an operator answers. */
export function approvalLines(approvals: readonly Approval[], now: number, width?: number): string[] {
  return table(
    approvals.map((each) => [
      each.approval_id,
      each.state,
      each.task_id ?? '-',
      each.agent_id,
      when(each.created_at, now).replace(' ago', ''),
      each.operation,
    ]),
    { heads: ['approval', 'state', 'task', 'agent', 'age', 'operation'], keep: [0, 1, 2], drop: [4, 3], width },
  )
}

/** Prints everything that the decision is about; the digest names it. */
export function approvalText(approval: Approval, now: number): string {
  const { details, decided_at: decided, note } = approval
  return record([
    ['approval', approval.approval_id],
    ['operation', oneLine(approval.operation)],
    ['details', Object.keys(details).length === 0 ? undefined : visibleLines(JSON.stringify(details, undefined, 2))],
    ['why', visibleLines(approval.reasoning).trimEnd()],
    ['state', approval.state],
    ['task', approval.task_id],
    ['run', approval.run_id],
    ['agent', approval.role === null ? approval.agent_id : `${approval.agent_id} (${approval.role})`],
    ['estimate', tokensText(approval.estimated_tokens)],
    ['asked', moment(approval.created_at, now)],
    ['expires', approval.state === 'pending' ? moment(approval.expires_at, now) : undefined],
    ['decided', decided === null ? undefined : `${moment(decided, now)} by ${oneLine(approval.decided_by ?? 'nobody')}`],
    ['note', note === null ? undefined : visibleLines(note)],
    ['used', approval.used_at === null ? undefined : moment(approval.used_at, now)],
    ['digest', approval.digest],
  ])
}
