/**
 * Ends sandbox processes whose owner was killed. bubblewrap's inner process waits for its outer one without limit; when the outer one ends
 * first, nothing else ends the inner one.
 */

import { closeSync, readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { basename } from 'node:path'
import { type Libc, openLibc } from '../libc.ts'
import { markOption } from './sandbox-mark.ts'

/** These numbers are equal on every architecture that we support. */
const PIDFD_SEND_SIGNAL = 424n
const PIDFD_OPEN = 434n
const SIGKILL = 9n

/**
 * Ends every bubblewrap process of this user that carries one of these marks. A mark stands for one private folder, whose name tells the
 * owner and is never reused.
 * @returns how many processes it ended
 */
export function endLeftovers(marks: ReadonlySet<string>): number {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  const found = pids.filter((pid) => isLeftover(pid, marks))
  if (found.length === 0) return 0
  const libc = openLibc()
  return found.filter((pid) => end(libc, pid, marks)).length
}

/** Returns false for a process that cannot be read. */
function isLeftover(pid: string, marks: ReadonlySet<string>): boolean {
  try {
    const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
    const at = words.indexOf(markOption)
    return (
      at >= 0 &&
      marks.has(words[at + 1] ?? '') &&
      statSync(`/proc/${pid}`).uid === process.geteuid?.() &&
      /^bwrap( \(deleted\))?$/.test(basename(readlinkSync(`/proc/${pid}/exe`)))
    )
  } catch {
    return false
  }
}

/** Holds the process by a handle and checks it again, because its process number may belong to another process by now. */
function end(libc: Libc, pid: string, marks: ReadonlySet<string>): boolean {
  const handle = Number(libc.syscall(PIDFD_OPEN, BigInt(pid), 0n, 0n, 0n, 0n))
  if (handle < 0) return false
  try {
    return isLeftover(pid, marks) && libc.syscall(PIDFD_SEND_SIGNAL, BigInt(handle), SIGKILL, 0n, 0n, 0n) === 0n
  } finally {
    closeSync(handle)
  }
}
