/**
 * Approves exactly one plan: each approval expires soon, is decided once and is consumed once. Pure; the store must swap states
 * atomically.
 */

import { digest } from '../kit/digest.ts'

export const longestTtlMs = 600_000

export type Approval = {
  readonly id: string
  readonly plan: string
  /** Milliseconds since the epoch. */
  readonly openedAt: number
  readonly expiresAt: number
  readonly state: 'open' | 'allowed' | 'denied' | 'used'
  readonly by?: string
  readonly note?: string
  /** Hash of id, plan and both times. An approval whose times or plan were edited in the store is refused. */
  readonly seal: string
}

export type ApprovalRefusal = {
  readonly ok: false
  readonly code: 'unknown' | 'expired' | 'already_decided' | 'undecided' | 'denied' | 'used' | 'other_plan' | 'altered' | 'bad_ttl'
  readonly reason: string
}

export type ApprovalResult = { readonly ok: true; readonly approval: Approval } | ApprovalRefusal

export function openApproval({ id, plan, now, ttlMs }: { id: string; plan: string; now: number; ttlMs: number }): ApprovalResult {
  if (!Number.isSafeInteger(now) || !Number.isSafeInteger(ttlMs) || ttlMs <= 0 || ttlMs > longestTtlMs)
    return refused('bad_ttl', `ttl: ${ttlMs} ms; an approval lives between 1 and ${longestTtlMs} ms`)
  const approval = { id, plan, openedAt: now, expiresAt: now + ttlMs, state: 'open' as const }
  return { ok: true, approval: { ...approval, seal: sealOf(approval) } }
}

/** `plan` is the plan that the decider saw; `approval` is undefined when no such approval was opened. */
export function decide(
  approval: Approval | undefined,
  { plan, allow, by, now, note }: { plan: string; allow: boolean; by: string; now: number; note?: string },
): ApprovalResult {
  const refusal = unfit(approval, { plan, now })
  if (refusal || !approval) return refusal ?? unknown()
  if (approval.state !== 'open')
    return refused('already_decided', `approval ${approval.id} was already ${approval.state} by ${approval.by}`)
  const state = allow ? 'allowed' : 'denied'
  return { ok: true, approval: { ...approval, state, by, ...(note === undefined ? {} : { note }) } }
}

/** The executor calls this right before the spawn. `plan` is the hash judged again at that moment; a second consume is refused. */
export function consume(approval: Approval | undefined, { plan, now }: { plan: string; now: number }): ApprovalResult {
  const refusal = unfit(approval, { plan, now })
  if (refusal || !approval) return refusal ?? unknown()
  if (approval.state === 'open') return refused('undecided', `approval ${approval.id} has no decision yet`)
  if (approval.state === 'denied') return refused('denied', `approval ${approval.id} was denied by ${approval.by}`)
  return { ok: true, approval: { ...approval, state: 'used' } }
}

/** Checks `used` first, so that a late replay is still reported as a replay. Setting the clock back must not extend an approval. */
function unfit(approval: Approval | undefined, { plan, now }: { plan: string; now: number }): ApprovalRefusal | undefined {
  if (!approval) return unknown()
  if (approval.seal !== sealOf(approval)) return refused('altered', `approval ${approval.id} was edited after it was opened; ask again`)
  if (approval.state === 'used') return refused('used', `approval ${approval.id} was already used; each is good for one run`)
  if (approval.plan !== plan)
    return refused('other_plan', `approval ${approval.id} is for another plan; what would run has changed, ask again`)
  if (!(now >= approval.openedAt && now < approval.expiresAt)) return refused('expired', `approval ${approval.id} has expired; ask again`)
}

function sealOf({ id, plan, openedAt, expiresAt }: Omit<Approval, 'seal'>): string {
  return digest({ id, plan, openedAt, expiresAt })
}

function unknown(): ApprovalRefusal {
  return refused('unknown', 'no such approval was ever opened; "approvals list" shows those that are')
}

function refused(code: ApprovalRefusal['code'], reason: string): ApprovalRefusal {
  return { ok: false, code, reason }
}
