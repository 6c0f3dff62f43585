/** Pauses every process of a sandbox, so that what it wrote can be copied as it is at one moment. */

import { readdirSync, readFileSync } from 'node:fs'
import { statFields } from '../../kit/proc.ts'

const LONGEST_MS = 2_000

/**
 * All processes of a PID namespace descend from its first one. None can ignore the signal; new ones are looked for until none runs.
 * @throws Error when that takes too long
 */
export async function pauseProcesses(first: number): Promise<Disposable> {
  const paused = new Set<number>()
  const resume = () => {
    for (const pid of paused) signal(pid, 'SIGCONT')
  }
  for (const until = performance.now() + LONGEST_MS; performance.now() < until; await Bun.sleep(1)) {
    const running = descendantsOf(first).filter(([, state]) => !'TtZX'.includes(state))
    if (running.length === 0) return { [Symbol.dispose]: resume }
    for (const [pid] of running) if (signal(pid, 'SIGSTOP')) paused.add(pid)
  }
  resume()
  throw new Error('its processes could not be paused')
}

/** @returns each process with its state */
function descendantsOf(first: number): (readonly [pid: number, state: string])[] {
  const children = Map.groupBy(
    readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .flatMap(processOf),
    ({ parent }) => parent,
  )
  const below = (pid: number): (readonly [number, string])[] =>
    (children.get(pid) ?? []).flatMap((each) => [[each.pid, each.state] as const, ...below(each.pid)])
  return below(first)
}

function processOf(name: string) {
  try {
    const field = statFields(readFileSync(`/proc/${name}/stat`, 'latin1'))
    return [{ pid: Number(name), parent: Number(field(4)), state: field(3) }]
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
