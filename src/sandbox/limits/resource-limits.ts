/** Sets the resource limits of one process and all its children from outside, while the process waits to start. */

import { writeFileSync } from 'node:fs'
import type { Limits } from '../confinement.ts'
import type { Libc } from '../libc.ts'

/** These numbers are equal on every Linux except MIPS and SPARC. */
const resources = { cpu: 0, fileSize: 1, data: 2, core: 4, processes: 6, queues: 12 } as const

/**
 * `memoryBytes` limits data, not address space: runtimes reserve terabytes of address space and never use them. The kernel does not count
 * the processes of the real root (0 in its own namespace); the control group counts them.
 * @returns the first limit that could not be set, as a message
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
    // Protected folders are covered by the message queue file system: with this limit, nobody can create anything there.
    ['queues', 0],
    ['processes', limits.processes],
  ]
  const failed = wanted.find(([name, value]) => libc.prlimit(pid, resources[name], pair(value), null) !== 0)
  preferForEnding(pid)
  return failed && `the limit ${failed[0]} = ${failed[1]} could not be set`
}

/** When memory runs out, the kernel ends a command rather than us. Every user may raise this value. */
function preferForEnding(pid: number): void {
  try {
    writeFileSync(`/proc/${pid === 0 ? 'self' : pid}/oom_score_adj`, '800')
  } catch {
    // The process has ended, or there is no /proc: no reason to refuse the command.
  }
}

function pair(value: number): BigUint64Array {
  const bound = BigInt(Math.floor(value))
  return new BigUint64Array([bound, bound])
}
