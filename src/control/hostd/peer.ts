/** Asks the kernel who is at the other end of a Unix socket, and decides whether that user may connect. */

import type { Libc } from '../../sandbox/libc.ts'
import type { ServerRules } from './catalogue/operation.ts'

export type Peer = { readonly pid: number; readonly uid: number; readonly gid: number; readonly groups: readonly number[] }

const SOL_SOCKET = 1
const SO_PEERCRED = 17
const SO_PEERGROUPS = 59
const mostGroups = 1_024

/** The kernel noted it when the peer connected. @returns undefined when the kernel does not say */
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

/** The user of hostd itself may always connect; its right to bring approvals has to be given like that of others, unless nobody's was. */
export function mayConnect({ uid, gid, groups }: Peer, { uids, gids }: ServerRules, own: number): boolean {
  return uid === own || uids.includes(uid) || gids.includes(gid) || groups.some((one) => gids.includes(one))
}

export function mayApprove({ uid }: Peer, { controlUids }: ServerRules, own: number): boolean {
  return controlUids.length === 0 ? uid === own : controlUids.includes(uid)
}
