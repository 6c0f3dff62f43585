/** The runtime's questions over the table of approvals: what a person is asked in one process can be answered in another. */

import type { ExternalEvent, InternalEvent } from '../runtime/event.ts'
import { gateIdOf } from '../runtime/gate-id.ts'
import type { Decision, Questions, RunIdentity } from '../runtime/port.ts'
import type { Approval, Approvals } from './approval-table.ts'

/** All but `answered` are called inside the recorder's transaction: what is asked, answered and used up is on disk with what it belongs to. */
export type ApprovalRequests = Pick<Questions, 'answered'> & {
  /** `expires` in milliseconds since 1970. @returns the yes given earlier to this very plan in this conversation, hereby used up */
  opened(run: RunIdentity, gate: Extract<InternalEvent, { type: 'gate.open' }>, expires: number): Decision | undefined
  decided(run: RunIdentity, decision: Extract<ExternalEvent, { type: 'approval.decision' }>): void
  /** The call was refused: the question is closed, unless it was refused because nobody was there to ask. */
  refused(run: RunIdentity, deny: Extract<InternalEvent, { type: 'deny' }>): void
  /** Single use, right before the act. @returns why the call may not be carried out after all */
  use(run: RunIdentity, act: Extract<InternalEvent, { type: 'act' }>): string | undefined
}

/** @param redact takes secrets out of a text; applied to all that is stored */
export function createApprovalRequests(approvals: Approvals, redact: (text: string) => string): ApprovalRequests {
  return {
    opened(run, gate, expires) {
      const { plan } = gate.judgement
      const earlier = approvals.standing({ conversationId: run.conversationId, plan })
      const good = earlier !== undefined && approvals.consume({ id: earlier.id, plan }).ok
      approvals.create({ run, gate: clean(gate, redact), expires: good ? Math.min(expires, earlier.expires) : expires })
      return good ? { allow: true, by: earlier.decidedBy ?? 'operator', note: `allowed as ${earlier.id}` } : undefined
    },
    answered(run, callId) {
      const approval = approvals.get(gateIdOf(run.runId, callId))
      return approval && (approval.state === 'allowed' || approval.state === 'denied') ? decisionOf(approval) : undefined
    },
    decided(run, { id: callId, allow, by, note }) {
      const id = gateIdOf(run.runId, callId)
      const said = note === undefined ? {} : { note: redact(note) }
      if (allow) approvals.decide({ id, allow, by, ...said })
      else if (!unattended.includes(by)) approvals.close({ id, by, ...said })
    },
    refused(run, { id: callId, by, reason }) {
      if (!unattended.includes(by.replace(/^approval\./, '')))
        approvals.close({ id: gateIdOf(run.runId, callId), by, note: redact(reason) })
    },
    use(run, { id: callId, judgement: { plan } }) {
      const used = approvals.consume({ id: gateIdOf(run.runId, callId), plan })
      return used.ok ? undefined : used.reason
    },
  }
}

/** Not a person's no: the question stays open until its time is over. */
const unattended = ['nobody']

function clean<T extends Parameters<ApprovalRequests['opened']>[1]>(gate: T, redact: (text: string) => string): T {
  const { judgement } = gate
  return { ...gate, judgement: { ...judgement, reason: redact(judgement.reason), summary: redact(judgement.summary) } }
}

function decisionOf({ state, decidedBy, note }: Approval): Decision {
  return { allow: state === 'allowed', by: decidedBy ?? 'operator', ...(note === null ? {} : { note }) }
}
