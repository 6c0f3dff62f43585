/** Resource limits of one process and all its children, set from outside while it waits to start. */

import type { Limits } from './confinement.ts'
import type { Libc } from './libc.ts'

/** The same numbers on every Linux but MIPS and SPARC. */
const resources = { cpu: 0, fileSize: 1, data: 2, core: 4, processes: 6, queues: 12 } as const

/**
 * `memoryBytes` bounds data, not address space: runtimes reserve terabytes of that and never touch them. The kernel does not count
 * the processes of the real root (0 in its own namespace); there the control group does.
 * @returns the first limit that could not be set, in words.
 */
export function limitProcess({
  libc,
  pid,
  limits,
}: {
  readonly libc: Libc
  readonly pid: number
  readonly limits: Limits
}): string | undefined {
  const wanted: readonly (readonly [keyof typeof resources, number])[] = [
    ['cpu', limits.cpuSeconds],
    ['fileSize', limits.fileBytes],
    ['data', limits.memoryBytes],
    ['core', 0],
    // Protected folders lie under the message queue file system: nothing can be made there.
    ['queues', 0],
    ['processes', limits.processes],
  ]
  const failed = wanted.find(([name, value]) => libc.prlimit(pid, resources[name], pair(value), null) !== 0)
  return failed && `the limit ${failed[0]} = ${failed[1]} could not be set`
}

function pair(value: number): BigUint64Array {
  const bound = BigInt(Math.floor(value))
  return new BigUint64Array([bound, bound])
}
