/** The pipe on which bubblewrap reports, made so that its writing succeeds also when we are dead. */

import { closeSync, constants, openSync } from 'node:fs'
import type { Libc } from './libc.ts'

const { O_RDONLY, O_RDWR, O_NONBLOCK } = constants
// node:fs does not name it; the value is that of x86-64, arm64 and riscv64.
const O_CLOEXEC = 0o2000000

/** `read` is ours, `write` is the child's: to be closed here as soon as the child has it. */
export type Report = { readonly read: number; readonly write: number }

/**
 * bubblewrap forks first, then reports, then lets its child go on. If we are killed before it reports, a pipe without a reader would end it
 * right there, and its child would wait for ever. So the descriptor that it writes to can also read: the pipe always has a reader.
 * @throws Error when there are too many open files
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
