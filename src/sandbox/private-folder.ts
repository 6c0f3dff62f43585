/**
 * Creates a sandbox's private folder in our state, for its filter and proxy socket. The name of the folder identifies its owner, and marks
 * the sandbox's processes in their command line, so that the next start finds and ends those whose owner was killed.
 */

import { closeSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, realpathSync, rmSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { atEnd, errnoOf, errorText } from '../kit/errors.ts'
import { namesIn, statFields } from '../kit/proc.ts'
import { sha256 } from '../kit/sha256.ts'
import type { Log } from '../runtime/port.ts'
import { type Libc, openLibc } from './libc.ts'

type OwnFolder = { readonly ok: true; readonly path: string; remove(): void } | { readonly ok: false; readonly missing: string }

/** Creates the folder; before that, ends the sandbox processes of dead owners and removes their folders. */
export function ownFolder(stateHome: string, log: Log): OwnFolder {
  const run = join(stateHome, 'run')
  try {
    mkdirSync(run, { recursive: true, mode: 0o700 })
    clearLeftovers(stateHome, log)
    const path = mkdtempSync(join(run, `sandbox-${ownerName()}-`))
    return { ok: true, path, remove: () => rmSync(path, { recursive: true, force: true }) }
  } catch (error) {
    return { ok: false, missing: `${run}: ${errorText(error)}; the sandbox keeps its filter there, so make it writable` }
  }
}

/**
 * Ends the sandbox processes of our killed processes and removes their folders. The folder exists as long as such a process may live, so
 * without folders the cost is one directory read.
 * @returns how many processes it ended
 */
export function clearLeftovers(stateHome: string, log: Log): number {
  const run = join(stateHome, 'run')
  const left = namesIn(run).filter(isOfDeadOwner)
  const ended = left.length === 0 ? 0 : endLeftovers(new Set(left.map((name) => sandboxMark(join(run, name)))))
  for (const name of left) rmSync(join(run, name), { recursive: true, force: true })
  if (ended > 0) log('warn', 'sandbox processes of a killed run ended', { count: ended })
  return ended
}

/** Tells whether a killed process left a sandbox, perhaps with a private view. */
export function hasLeftovers(stateHome: string): boolean {
  return namesIn(join(stateHome, 'run')).some(isOfDeadOwner)
}

/** Names this process so that others can tell whether it still lives: its PID namespace, its number and when it started. */
export function ownerName(): string {
  return `${pidNamespace()}-${process.pid}-${startOf(process.pid)}`
}

/**
 * Tells whether the process that `ownerName` put into this name, after a prefix of ours, has ended. A process number is valid only in its own PID
 * namespace, so each container cleans up only its own folders.
 */
export function isOfDeadOwner(name: string): boolean {
  const [, namespace, pid = '', started] = /^(?:sandbox|tx)-(\d+)-(\d+)-(\d+)-/.exec(name) ?? []
  if (namespace === undefined || namespace !== pidNamespace()) return false
  const now = startOf(Number(pid))
  return now !== undefined && now !== started
}

function pidNamespace(): string | undefined {
  return /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0]
}

/** @returns when a process started, in ticks since boot; "gone" when it does not exist, undefined when that cannot be determined */
function startOf(pid: number): string | undefined {
  try {
    const field = statFields(readFileSync(`/proc/${pid}/stat`, 'latin1'))
    return field(3) === 'Z' || field(3) === 'X' ? 'gone' : field(22)
  } catch (error) {
    return ['ENOENT', 'ESRCH'].includes(errnoOf(error) ?? '') ? 'gone' : undefined
  }
}

/** These numbers are equal on every architecture that we support. */
const PIDFD_SEND_SIGNAL = 424n
const PIDFD_OPEN = 434n
const SIGKILL = 9n

/**
 * Ends every bubblewrap process of this user that carries one of these marks: the inner process waits for the outer one without limit, and
 * nothing else ends it when the outer one ends first. A mark stands for one private folder, whose name tells the owner and is never reused.
 * @returns how many processes it ended
 */
function endLeftovers(marks: ReadonlySet<string>): number {
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
  using _end = atEnd(() => closeSync(handle))
  return isLeftover(pid, marks) && libc.syscall(PIDFD_SEND_SIGNAL, BigInt(handle), SIGKILL, 0n, 0n, 0n) === 0n
}

/** bubblewrap removes an environment variable that nobody has set: the option has no effect and can carry a name. */
export const markOption = '--unsetenv'

/** @returns a name that identifies the sandbox's private folder and does not tell a command where that is */
export function sandboxMark(folder: string): string {
  return `sandbox_${sha256(realpathSync(folder)).slice(0, 32)}`
}
