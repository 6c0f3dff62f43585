/** Checks the approval that a control plane brings: from its user, for exactly this call, used a moment ago and never before. */

import type { JsonObject } from '../../../kit/json.ts'
import type { ApprovalProof } from '../hostd-wire.ts'
import { approvalFor } from '../may-call.ts'

export type ApprovalCheck = { readonly ok: true } | { readonly ok: false; readonly message: string }

export type ApprovalQuestion = {
  readonly proof: ApprovalProof
  readonly op: string
  readonly params: JsonObject
  /** Whether the peer's user may bring approvals. */
  readonly isControl: boolean
}

/** How old the use of an approval may be, and how far clocks may differ, in milliseconds. */
const freshMs = 300_000

/**
 * Only in memory: a use from before this daemon started is refused, so that no replay survives a restart. The control plane asks for another
 * approval then.
 */
export function createApprovalCheck(now: () => number): (question: ApprovalQuestion) => ApprovalCheck {
  const startedAt = now()
  const used = new Map<string, number>()

  return ({ proof, op, params, isControl }) => {
    const { approval_id, digest, used_at } = proof
    const at = Date.parse(used_at)
    const key = `${approval_id} ${digest} ${used_at}`
    for (const [old, since] of used) if (since < now() - 2 * freshMs) used.delete(old)
    if (!isControl) return refused('only the user of the control plane may bring an approval; see control_uids in the catalogue')
    if (digest !== approvalFor(op, params).digest) return refused(`${approval_id} covers another call than "${op}" with these parameters`)
    if (at < startedAt - 1_000) return refused(`${approval_id} was used before this hostd started; ask for another approval`)
    if (Math.abs(now() - at) > freshMs) return refused(`${approval_id} was used at ${used_at}, which is not now; ask for another approval`)
    if (used.has(key)) return refused(`${approval_id} was already used`)
    used.set(key, at)
    return { ok: true }
  }
}

function refused(message: string): ApprovalCheck {
  return { ok: false, message }
}
