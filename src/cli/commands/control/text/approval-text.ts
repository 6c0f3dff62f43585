/** Prints approvals: the questions of agents that an operator answers. */

import type { Approval } from '../../../../control/contract/approval-shapes.ts'
import { visibleLines } from '../../../../kit/text.ts'
import { oneLine, record, table } from './table.ts'
import { moment, tokensText, when } from './time-text.ts'

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
    {
      heads: ['approval', 'state', 'task', 'agent', 'age', 'operation'],
      keep: [0, 1, 2],
      drop: [4, 3],
      ...(width === undefined ? {} : { width }),
    },
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
