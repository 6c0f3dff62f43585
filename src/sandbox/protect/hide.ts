/** Closes our own process to other processes of the same user: no /proc/PID/environ, memory or descriptors, and no core dumps. */

import { openLibc } from '../libc.ts'

const PR_GET_DUMPABLE = 3
const PR_SET_DUMPABLE = 4
const RLIMIT_CORE = 4

/**
 * Does not affect children: a new program starts dumpable again. Root with all capabilities can still look in. Loading the C library takes
 * half a millisecond, so call this before the first child starts rather than at start-up.
 * @returns false when the system refuses, or is not Linux
 */
export function hideProcess(): boolean {
  if (process.platform !== 'linux') return false
  const libc = openLibc()
  libc.prlimit(0, RLIMIT_CORE, new BigUint64Array([0n, 0n]), null)
  libc.prctl(PR_SET_DUMPABLE, 0n, 0n, 0n, 0n)
  return libc.prctl(PR_GET_DUMPABLE, 0n, 0n, 0n, 0n) === 0
}
