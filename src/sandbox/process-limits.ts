/** Limits what a command uses: each process by limits of the kernel, all of them together by watching. */

import { statfsSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { attempt } from '../kit/errors.ts'
import { namesIn, textIn } from '../kit/proc.ts'
import type { Limits } from './contract.ts'
import type { Libc } from './libc.ts'

/** These numbers are equal on every Linux except MIPS and SPARC. */
const resources = { cpu: 0, fileSize: 1, data: 2, core: 4, processes: 6, queues: 12 } as const

/**
 * Sets the limits of one process and all its children from outside, while the process waits to start.
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
  const values: readonly (readonly [keyof typeof resources, number])[] = [
    ['cpu', limits.cpuSeconds],
    ['fileSize', limits.fileBytes],
    ['data', limits.memoryBytes],
    ['core', 0],
    // Protected folders are covered by the message queue file system: with this limit, nobody can create anything there.
    ['queues', 0],
    ['processes', limits.processes],
  ]
  const failed = values.find(([name, value]) => libc.prlimit(pid, resources[name], pair(value), null) !== 0)
  preferForEnding(pid)
  return failed && `the limit ${failed[0]} = ${failed[1]} could not be set`
}

/** When memory runs out, the kernel ends a command rather than us. Every user may raise this value. */
function preferForEnding(pid: number): void {
  // When the process has ended, or there is no /proc, that is no reason to refuse the command.
  attempt(() => writeFileSync(`/proc/${pid === 0 ? 'self' : pid}/oom_score_adj`, '800'))
}

function pair(value: number): BigUint64Array {
  const bound = BigInt(Math.floor(value))
  return new BigUint64Array([bound, bound])
}

export type Watch = {
  /** Ends the watching. @returns why the command was stopped */
  end(): string | undefined
}

type Watching = {
  /** The first process of the command's PID namespace. */
  readonly pid: number
  readonly limits: Limits
  kill(): void
  readonly everyMs?: number
}

type Use = { readonly processes: number; readonly memoryBytes: number; readonly writtenBytes: number }

/** A command that is quicker than this costs nothing. */
const EVERY_MS = 200
const PAGE = 4096

/** Watches all processes of a command together, because the limits that every user may set count each process separately. */
export function watchUse({ pid, limits, kill, everyMs = EVERY_MS }: Watching): Watch {
  const state: { reason?: string; timer?: ReturnType<typeof setTimeout> } = {}
  const check = () => {
    state.reason = excess(pid, limits)
    if (state.reason === undefined) wait()
    else kill()
  }
  const wait = () => {
    state.timer = setTimeout(check, everyMs)
    state.timer.unref()
  }
  wait()
  return {
    end() {
      clearTimeout(state.timer)
      return state.reason
    },
  }
}

function excess(pid: number, limits: Limits): string | undefined {
  const { totalMemoryBytes = limits.memoryBytes, processes, diskBytes = Number.POSITIVE_INFINITY } = limits
  const folder = `/proc/${pid}/root/proc`
  // Until the sandbox is set up, which a busy machine delays, this is the /proc of the machine with all its processes.
  if (deviceOf(folder) === deviceOf('/proc')) return undefined
  const use = measure(pid, folder)
  if (use.processes > processes) return `stopped: it started more than ${processes} processes`
  if (use.writtenBytes > diskBytes) return `stopped: its processes together wrote more than ${diskBytes} bytes to disk`
  if (use.memoryBytes > totalMemoryBytes && [1, 2, 3].every(() => measure(pid, folder, shares).memoryBytes > totalMemoryBytes))
    return `stopped: its processes together held more than ${totalMemoryBytes} bytes of memory, files in /tmp included`
}

/** The command's own /proc shows exactly the processes of its namespace; bubblewrap's first one counts what ended ones wrote. */
function measure(pid: number, folder: string, memoryOf = own): Use {
  const all = namesIn(folder).filter((name) => /^\d+$/.test(name))
  const sum = (of: (path: string) => number) => all.reduce((total, name) => total + of(join(folder, name)), 0)
  return { processes: all.length - 1, memoryBytes: sum(memoryOf) + inMemoryFiles(pid), writtenBytes: sum(written) }
}

function deviceOf(folder: string): number | undefined {
  return attempt(() => statSync(folder).dev)
}

/** Memory that is not backed by a file. Processes that share pages after a fork count each. */
function own(path: string): number {
  const [, resident = 0, shared = 0] = textIn(join(path, 'statm')).split(' ').map(Number)
  return Math.max(0, resident - shared) * PAGE
}

/**
 * Counts a shared page once, and costs much more for a large process. A process that ends after it was read leaves its part of the shared
 * pages to those that are read after it, so a sum can be too high; the next one is not.
 */
function shares(path: string): number {
  const [, kilobytes = '0'] = /^Pss_Anon:\s+(\d+) kB$/m.exec(textIn(join(path, 'smaps_rollup'))) ?? []
  return Number(kilobytes) * 1024
}

function written(path: string): number {
  const io = textIn(join(path, 'io'))
  const count = (name: string) => Number(new RegExp(`^${name}: (\\d+)$`, 'm').exec(io)?.[1] ?? 0)
  return count('write_bytes') - count('cancelled_write_bytes')
}

function inMemoryFiles(pid: number): number {
  const { blocks = 0, bfree = 0, bsize = 0 } = attempt(() => statfsSync(`/proc/${pid}/root/tmp`)) ?? {}
  return (blocks - bfree) * bsize
}
