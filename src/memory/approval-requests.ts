/** Connects the runtime's questions to the table of approvals, so that one process can answer a question that another asked. */

import type { ExternalEvent, InternalEvent } from '../runtime/event.ts'
import { gateIdOf } from '../runtime/gate-id.ts'
import type { Decision, Questions, RunIdentity } from '../runtime/port.ts'
import { type Approval, type Approvals, alteredText } from './approval-table.ts'

/** The recorder calls all methods but `answered` inside its transaction, so that each change is on disk together with its journal entry. */
export type ApprovalRequests = Pick<Questions, 'answered'> & {
  /** `expires` in milliseconds since 1970. @returns an earlier approval of exactly this plan in this conversation, which is now used up */
  opened(run: RunIdentity, gate: Extract<InternalEvent, { type: 'gate.open' }>, expires: number): Decision | undefined
  decided(run: RunIdentity, decision: Extract<ExternalEvent, { type: 'approval.decision' }>): void
  /** Closes the question about a call or changes that were refused, unless nobody was there to answer and the changes, if any, are kept. */
  refused(gateId: string, refusal: { readonly by: string; readonly reason: string }, areLost?: boolean): void
  /** Consumes the approval of that plan directly before it is used; works once. @returns why it must not be used, if so */
  use(gateId: string, plan: string): string | undefined
}

/** @param redact removes secrets from a text; applied to everything that is stored */
export function createApprovalRequests(approvals: Approvals, redact: (text: string) => string): ApprovalRequests {
  return {
    opened(run, gate, expires) {
      const { plan } = gate.judgement
      const earlier = approvals.standing({ conversationId: run.conversationId, plan })
      const good = earlier !== undefined && approvals.consume({ id: earlier.id, plan }).ok
      approvals.create({ run, gate: clean(gate, redact), expires: good ? Math.min(expires, earlier.expires) : expires })
      return good ? { allow: true, by: earlier.decidedBy ?? 'operator', note: `allowed as ${earlier.id}` } : undefined
    },
    answered(gateId) {
      const approval = approvals.get(gateId)
      if (approval?.state === 'altered') return { allow: false, by: 'approval.altered', note: alteredText(gateId) }
      return approval && (approval.state === 'allowed' || approval.state === 'denied') ? decisionOf(approval) : undefined
    },
    decided(run, { id: callId, allow, by, note, plan }) {
      const aboutChanges = gateIdOf(run.runId, callId, 'changes')
      const id = approvals.get(aboutChanges)?.plan === plan ? aboutChanges : gateIdOf(run.runId, callId)
      const cleanNote = note && redact(note)
      if (allow) approvals.decide({ id, allow, by, note: cleanNote })
      else if (!unattended.includes(by)) approvals.close({ id, by, note: cleanNote })
    },
    refused(id, { by, reason }, areLost = false) {
      if (areLost || !unattended.includes(by.replace(/^approval\./, ''))) approvals.close({ id, by, note: redact(reason) })
    },
    use(id, plan) {
      const used = approvals.consume({ id, plan })
      return used.ok ? undefined : used.reason
    },
  }
}

/** These refusals are not a person's: the question stays open until it expires. */
const unattended = ['nobody']

function clean<T extends Parameters<ApprovalRequests['opened']>[1]>(gate: T, redact: (text: string) => string): T {
  const { judgement } = gate
  return { ...gate, judgement: { ...judgement, reason: redact(judgement.reason), summary: redact(judgement.summary) } }
}

function decisionOf({ state, decidedBy, note }: Approval): Decision {
  return { allow: state === 'allowed', by: decidedBy ?? 'operator', ...(note === null ? {} : { note }) }
}
