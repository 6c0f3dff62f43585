/**
 * Finds out which process may still write into the pipe on stdin: another process of the pipeline may, a parent that forgot the pipe will
 * not.
 */

import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/**
 * Linux only, and it sees only processes of the same user. True when a process that is neither this one nor an ancestor can write into
 * the pipe of stdin: `slow | braidclaw`. False for a pipe that a supervisor holds and forgot, whoever else reads from it.
 */
export function hasNeighbour(): boolean {
  const pipe = target('/proc/self/fd/0')
  if (pipe === undefined || !pipe.startsWith('pipe:')) return false
  const family = ancestors(process.pid)
  return readdirSync('/proc').some((pid) => /^\d+$/.test(pid) && !family.has(Number(pid)) && holds(pid, pipe))
}

function holds(pid: string, pipe: string): boolean {
  try {
    return readdirSync(`/proc/${pid}/fd`).some((fd) => target(`/proc/${pid}/fd/${fd}`) === pipe && isWritable(pid, fd))
  } catch {
    return false
  }
}

/** Reads the flags of the descriptor, which are octal; the last two bits say how it was opened. */
function isWritable(pid: string, fd: string): boolean {
  const [, flags = '0'] = /^flags:\s*([0-7]+)/m.exec(readFileSync(`/proc/${pid}/fdinfo/${fd}`, 'utf8')) ?? []
  return (Number.parseInt(flags, 8) & 3) !== 0
}

function target(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}

/** Includes the process itself. */
function ancestors(pid: number): ReadonlySet<number> {
  const found = new Set<number>()
  for (let at = pid; at > 0 && !found.has(at); at = parentOf(at)) found.add(at)
  return found
}

/** Reads the fields after the command's name, which may contain any character: the state and the parent. */
function parentOf(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
  } catch {
    return 0
  }
}
