/** Closes our own process to others of the same user: no /proc/PID/environ, memory or descriptors for them, and no core dumps. */

import { openLibc } from '../libc.ts'

const PR_GET_DUMPABLE = 3
const PR_SET_DUMPABLE = 4
const RLIMIT_CORE = 4

/**
 * Children are not touched: a new program starts dumpable again. Root with all its capabilities looks in all the same. Costs the half
 * millisecond that loading the C library takes, so it is done before the first child, not at start.
 * @returns false when the system refuses, or is no Linux
 */
export function hideProcess(): boolean {
  if (process.platform !== 'linux') return false
  const libc = openLibc()
  libc.prlimit(0, RLIMIT_CORE, new BigUint64Array([0n, 0n]), null)
  libc.prctl(PR_SET_DUMPABLE, 0n, 0n, 0n, 0n)
  return libc.prctl(PR_GET_DUMPABLE, 0n, 0n, 0n, 0n) === 0
}
