/** Opens the pipe on which bubblewrap reports, so that its writes succeed even after our process has ended. */

import { closeSync, constants, openSync } from 'node:fs'
import type { Libc } from './libc.ts'

const { O_RDONLY, O_RDWR, O_NONBLOCK } = constants
// node:fs does not name it; the value is that of x86-64, arm64 and riscv64.
const O_CLOEXEC = 0o2000000

/** `read` stays with us, `write` goes to the child: close our copy of `write` as soon as the child has it. */
export type Report = { readonly read: number; readonly write: number }

/**
 * bubblewrap forks, then reports, then lets its child continue. If our process were killed before the report, a pipe without a reader would
 * end bubblewrap there, and its child would wait forever. So the descriptor for writing can also read: the pipe always has a reader.
 * @throws Error when too many files are open
 */
export function openReport(libc: Libc): Report {
  const ends = new Int32Array(2)
  if (libc.pipe2(ends, O_CLOEXEC) !== 0) throw new Error('no pipe could be made: too many files are open')
  const [reading = -1, writing = -1] = ends
  const opened: number[] = []
  const reopen = (end: number, flags: number) => {
    const descriptor = openSync(`/proc/self/fd/${end}`, flags | O_CLOEXEC)
    opened.push(descriptor)
    return descriptor
  }
  try {
    return { read: reopen(reading, O_RDONLY | O_NONBLOCK), write: reopen(writing, O_RDWR) }
  } catch (error) {
    for (const descriptor of opened) closeSync(descriptor)
    throw error
  } finally {
    closeSync(reading)
    closeSync(writing)
  }
}
