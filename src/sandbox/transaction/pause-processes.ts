/** Pauses every process of a sandbox, so that what it wrote can be copied as it is at one moment. */

import { readdirSync, readFileSync } from 'node:fs'
import { statFields } from '../../kit/proc.ts'

const LONGEST_MS = 2_000

/**
 * All processes of a PID namespace descend from its first one, and whoever loses its parent becomes a child of the first. None can ignore
 * the signal; new ones are looked for until none runs. @throws Error when that takes too long
 */
export async function pauseProcesses(first: number): Promise<Disposable> {
  const stopped = new Set<number>()
  const goOn = () => {
    for (const pid of stopped) signal(pid, 'SIGCONT')
  }
  for (const until = performance.now() + LONGEST_MS; performance.now() < until; await Bun.sleep(1)) {
    const running = descendantsOf(first).filter(({ state }) => !'TtZX'.includes(state))
    if (running.length === 0) return { [Symbol.dispose]: goOn }
    for (const { pid } of running) if (signal(pid, 'SIGSTOP')) stopped.add(pid)
  }
  goOn()
  throw new Error('its processes could not be paused')
}

type Process = { readonly pid: number; readonly parent: number; readonly state: string }

function descendantsOf(first: number): Process[] {
  const all = readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? processOf(Number(name)) : []))
  const found: Process[] = []
  const known = new Set([first])
  for (let more = true; more; ) {
    const next = all.filter(({ pid, parent }) => known.has(parent) && !known.has(pid))
    for (const each of next) known.add(each.pid)
    found.push(...next)
    more = next.length > 0
  }
  return found
}

function processOf(pid: number): Process[] {
  try {
    const field = statFields(readFileSync(`/proc/${pid}/stat`, 'latin1'))
    return [{ pid, parent: Number(field(4)), state: field(3) ?? 'X' }]
  } catch {
    return []
  }
}

function signal(pid: number, name: 'SIGSTOP' | 'SIGCONT'): boolean {
  try {
    return process.kill(pid, name)
  } catch {
    return false
  }
}
