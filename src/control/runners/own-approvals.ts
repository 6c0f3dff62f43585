/** Answers the questions of a run of our own: changes of its copy need no yes, everything else needs an operator of the control plane. */

import type { Conversation } from '../../host/api.ts'
import { digest } from '../../kit/digest.ts'
import { cut } from '../../kit/text.ts'
import type { Question } from '../../runtime/port.ts'
import type { ActivityPost, ActivityReply } from '../contract/activity-shapes.ts'
import type { Approval, ApprovedOperation } from '../contract/approval-shapes.ts'

export type ApprovalsAsked = {
  readonly agentId: string
  readonly taskId: string
  readonly conversation: Pick<Conversation, 'approve' | 'changesOf'>
  readonly approvals: (taskId: string) => Promise<readonly Approval[]>
  readonly use: (id: string, digest: string) => Promise<ApprovedOperation>
  readonly activity: (post: ActivityPost) => Promise<ActivityReply>
  readonly redact: <T>(json: T) => T
}

export type OwnApprovals = {
  /** Decides an open question. @returns the id of the approval that the run now waits for; the run then has to end */
  decide(gateId: string, question: Question): Promise<string | undefined>
}

const mostInput = 16_000

export function ownApprovals(asked: ApprovalsAsked): OwnApprovals {
  const { conversation, approvals, use, activity, agentId, taskId } = asked
  const allow = (gateId: string, by: string, note: string) => conversation.approve(gateId, { allow: true, by, note })

  return {
    async decide(gateId, question) {
      if (await conversation.changesOf(gateId)) return void (await allow(gateId, 'worker', 'only in the copy of this run'))
      const operation = operationOf(question, asked)
      const wanted = digest(operation)
      const known = (await approvals(taskId)).find((each) => each.digest === wanted && each.state === 'approved')
      if (known) {
        const { approval_id, note } = await use(known.approval_id, wanted)
        return void (await allow(gateId, `operator (${approval_id})`, note ?? ''))
      }
      const reply = await activity({
        ...{ event_type: 'approval_request', agent_id: agentId, task_id: taskId, estimated_tokens: 0 },
        ...operation,
        reasoning: cut(question.judgement.reason, 4_000),
      })
      await conversation.approve(gateId, {
        allow: false,
        by: 'control plane',
        note: `an operator was asked (${reply.approval_id}); stop here`,
      })
      return reply.approval_id ?? 'an approval'
    },
  }
}

/** The same call in a later run gives the same operation: nothing in it depends on where the copy lies. */
function operationOf({ call, judgement }: Question, { redact }: ApprovalsAsked) {
  const input = redact(call.input)
  const text = JSON.stringify(input)
  const details = text.length > mostInput ? { tool: call.name, input_digest: digest(input) } : { tool: call.name, input }
  return { operation: cut(redact(`${call.name}: ${judgement.summary}`), 1_900), details }
}
