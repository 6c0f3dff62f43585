/**
 * Says who is at the other end of the socket and may connect, whether a call of an operation needs an approval, and whether the approval that a
 * control plane brings counts: for exactly this call, once.
 */

import type { JsonObject } from '../../kit/json.ts'
import { digest } from '../../kit/sha256.ts'
import type { Libc } from '../../sandbox/libc.ts'
import type { Caller } from '../contract/caller.ts'
import type { ServerRules } from './catalogue/operation.ts'
import type { ApprovalProof, OperationRow } from './hostd-wire.ts'

type MayCall = { readonly may: true } | { readonly may: false; readonly reason: string }

/**
 * Decides whether a caller needs an approval: an operator never does, the shared secret does not for operations that the catalogue gives
 * to it, and all others do except for operations of low risk.
 */
export function mayCall(
  { op, risk, approval, compat }: Pick<OperationRow, 'op' | 'risk' | 'approval' | 'compat'>,
  kind: Caller['kind'],
  approved: boolean,
): MayCall {
  if (approved || kind === 'operator') return { may: true }
  if (approval) return { may: false, reason: `the catalogue asks for an approval of each call of "${op}"` }
  if (risk !== 'low' && !(compat && kind === 'seed'))
    return { may: false, reason: `"${op}" has ${risk} risk; without an approval only operations of low risk may be called` }
  return { may: true }
}

/** Returns what an approval of a call covers. `details` holds everything that counts; hostd computes the digest itself. */
export function approvalFor(
  op: string,
  params: JsonObject,
): { readonly operation: string; readonly details: JsonObject; readonly digest: string } {
  const asked = { operation: `hostd ${op}`, details: { op, params } }
  return { ...asked, digest: digest(asked) }
}

type ApprovalCheck = { readonly ok: true } | { readonly ok: false; readonly message: string }

type ApprovalQuestion = {
  readonly proof: ApprovalProof
  readonly op: string
  readonly params: JsonObject
  /** Tells whether the peer's user may bring approvals. */
  readonly isControl: boolean
}

/** Limits how old the use of an approval may be, and how far clocks may differ, in milliseconds. */
const freshMs = 300_000

/**
 * Remembers used approvals only in memory: a use from before this daemon started is refused, so that no replay survives a restart. The control
 * plane then asks for another approval.
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

export type Peer = { readonly pid: number; readonly uid: number; readonly gid: number; readonly groups: readonly number[] }

const SOL_SOCKET = 1
const SO_PEERCRED = 17
const SO_PEERGROUPS = 59
const mostGroups = 1_024

/** Asks the kernel, which noted the peer when it connected. @returns undefined when the kernel does not say */
export function peerOf(libc: Libc, descriptor: number): Peer | undefined {
  const credentials = new Uint32Array(3)
  if (libc.getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, credentials, Uint32Array.of(12)) !== 0) return undefined
  const [pid = 0, uid = 0, gid = 0] = credentials
  return { pid, uid, gid, groups: groupsOf(libc, descriptor) }
}

function groupsOf(libc: Libc, descriptor: number): number[] {
  const groups = new Uint32Array(mostGroups)
  const bytes = Uint32Array.of(mostGroups * 4)
  return libc.getsockopt(descriptor, SOL_SOCKET, SO_PEERGROUPS, groups, bytes) === 0 ? [...groups.subarray(0, (bytes[0] ?? 0) / 4)] : []
}

/** The user of hostd itself may always connect. It may bring approvals only when it is listed for that, or when no user is. */
export function mayConnect({ uid, gid, groups }: Peer, { uids, gids }: ServerRules, own: number): boolean {
  return uid === own || uids.includes(uid) || gids.includes(gid) || groups.some((one) => gids.includes(one))
}

export function mayApprove({ uid }: Peer, { controlUids }: ServerRules, own: number): boolean {
  return controlUids.length === 0 ? uid === own : controlUids.includes(uid)
}
