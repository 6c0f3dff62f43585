/** Starts the program of one run, confined; it begins only when its process number is on disk. */

import { closeSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { atEnd, attempt } from '../../../kit/errors.ts'
import { filterProgram } from '../../../sandbox/seccomp.ts'
import { endGroup } from '../../../service/supervise.ts'
import { drained, pump } from '../../../tools/process.ts'
import { bubblewrapWords, type ConfinedChild, type Confinement, relayInside } from './child-confinement.ts'
import { type ChildRecords, killLeftovers, killMarked, markOf, type ProcessMark, startGuard, termGraceMs } from './child-processes.ts'

export type ChildPlan = Omit<ConfinedChild, 'blank'> & {
  readonly runId: string
  readonly tokenDigest: string
  readonly confinement: Confinement
  readonly args: readonly string[]
  /** The whole environment of the child. */
  readonly env: Readonly<Record<string, string>>
  readonly stdin?: string
  /** A folder of the worker for files that bubblewrap reads; the child does not see it. */
  readonly scratch: string
  readonly records: Pick<ChildRecords, 'write' | 'remove'>
  /** Limits how long the child may run after SIGTERM, in ms; default 5,000. */
  readonly termGraceMs?: number
  readonly onOutput: (chunk: Uint8Array, from: 'stdout' | 'stderr') => void
}

/**
 * `code` is the exit code of the program, 128 + n after signal n. `stopped`: the worker ended it. `leftovers` counts processes that had left its
 * group; it is 0 with bubblewrap, whose namespace ends them all and does not count them.
 */
export type ChildEnd = { readonly code: number; readonly stopped: boolean; readonly leftovers: number }

export type Child = {
  /** Resolves when every process of the child has ended and its output is read. Never rejects. */
  readonly ended: Promise<ChildEnd>
  /** Sends SIGTERM, and SIGKILL after five seconds; the second call kills at once. */
  stop(): void
}

const DRAIN_MS = 500
const STATUS_MS = 5_000
const exitNoStart = 125

/** @throws Error when the program cannot be started */
export async function startChild(plan: ChildPlan): Promise<Child> {
  mkdirSync(plan.scratch, { recursive: true, mode: 0o700 })
  const started = spawn(plan)
  const marks = await marksOf(plan, started.child.pid)
  const guard = startGuard(plan.confinement.way === 'bubblewrap' ? marks.map(({ pid }) => pid) : [-started.child.pid])
  try {
    plan.records.write({ run_id: plan.runId, token_digest: plan.tokenDigest, processes: [...marks] })
  } catch (error) {
    guard.stop()
    killMarked(marks)
    closeSync(started.gate)
    throw error
  }
  const state = { stops: 0 }
  const stop = () => {
    state.stops += 1
    endPolitely(marks, state.stops > 1 ? 0 : (plan.termGraceMs ?? termGraceMs))
  }
  const ended = finish({ plan, started, marks, guard, wasStopped: () => state.stops > 0 })
  openGate(started.gate)
  return { ended, stop }
}

/** Allows no core files, and no file of more than a GiB, because the largest files are read to compare them. */
const limits = 'ulimit -c 0; ulimit -f 2097152'

/** The script waits for a line before it becomes the program. When the worker dies first there is no line, and the program never runs. */
const gateScript = `read -r go <&4 || exit ${exitNoStart}; exec 4<&-; ${limits}; exec "$@"`
const relayScript = `${limits}; read -r go <&4 || exit ${exitNoStart}; exec 4<&- 3<&- 5<&-
socat "TCP-LISTEN:$1,bind=127.0.0.1,fork,reuseaddr" "UNIX-CONNECT:${relayInside}" >/dev/null 2>&1 &
until grep -q ":$2 .* 0A " /proc/net/tcp; do kill -0 $! 2>/dev/null || { echo 'the way to the control plane did not start' >&2; exit 126; }; sleep 0.01; done
shift 2; exec "$@"`

function gated({ program, args, relay }: ChildPlan): readonly string[] {
  const command = [program, ...args]
  if (relay === undefined) return ['/bin/sh', '-c', gateScript, 'sh', ...command]
  const { port } = relay
  return ['/bin/sh', '-c', relayScript, 'sh', String(port), port.toString(16).toUpperCase().padStart(4, '0'), ...command]
}

function wordsOf(plan: ChildPlan): readonly string[] {
  const { way, program } = plan.confinement
  if (way === 'bubblewrap') {
    const blank = join(plan.scratch, 'blank')
    writeFileSync(blank, '', { mode: 0o400 })
    return [program ?? 'bwrap', ...bubblewrapWords({ ...plan, blank }), '--', ...gated(plan)]
  }
  return way === 'setpriv' ? [program ?? 'setpriv', '--pdeathsig', 'KILL', '--', ...gated(plan)] : gated(plan)
}

function spawn(plan: ChildPlan) {
  const files = helperFiles(plan)
  using _end = atEnd(() => {
    closeSync(files.status)
    closeSync(files.filter)
  })
  const stdin = plan.stdin === undefined ? ('ignore' as const) : new Blob([plan.stdin])
  const child = Bun.spawn([...wordsOf(plan)], {
    cwd: plan.confinement.way === 'bubblewrap' ? '/' : plan.copy,
    env: { ...plan.env },
    stdio: [stdin, 'pipe', 'pipe', files.status, 'pipe', files.filter],
    detached: true,
  })
  const gate = child.stdio[4]
  if (typeof gate !== 'number') throw new Error('the runtime gave no descriptor for the gate')
  return { child, gate }
}

const statusFile = (scratch: string) => join(scratch, 'status.json')

function helperFiles({ scratch }: ChildPlan): { readonly status: number; readonly filter: number } {
  const filter = join(scratch, 'filter')
  writeFileSync(filter, filterProgram({ arch: process.arch === 'arm64' ? 'arm64' : 'x64', inet: true, unix: true }), { mode: 0o600 })
  return { status: openSync(statusFile(scratch), 'w', 0o600), filter: openSync(filter, 'r') }
}

/** Marks the process, and with bubblewrap the first process of the namespace too: killing that one ends all others in it. */
async function marksOf({ confinement, scratch }: ChildPlan, pid: number): Promise<readonly ProcessMark[]> {
  const outer = markOf(pid)
  if (confinement.way !== 'bubblewrap') return outer ? [outer] : []
  const until = performance.now() + STATUS_MS
  while (performance.now() < until && markOf(pid) !== undefined) {
    const inner = Number(/"child-pid": (\d+)\D/.exec(readFileSync(statusFile(scratch), 'utf8'))?.[1])
    const mark = Number.isNaN(inner) ? undefined : markOf(inner)
    if (mark) return outer ? [outer, mark] : [mark]
    await Bun.sleep(1)
  }
  return outer ? [outer] : []
}

function openGate(gate: number): void {
  // A child that has ended already says why with its exit.
  attempt(() => writeSync(gate, 'go\n'))
  closeSync(gate)
}

/** Signals the group, because the first process of a namespace ignores a SIGTERM from outside. */
function endPolitely(marks: readonly ProcessMark[], graceMs: number): void {
  const leader = marks.at(-1)
  if (graceMs === 0) return void killMarked(marks)
  if (leader) endGroup(leader.pid, 'SIGTERM')
  setTimeout(() => killMarked(marks), graceMs).unref()
}

type FinishOptions = {
  readonly plan: ChildPlan
  readonly started: ReturnType<typeof spawn>
  readonly marks: readonly ProcessMark[]
  readonly guard: { stop(): void }
  readonly wasStopped: () => boolean
}

async function finish({ plan, started, marks, guard, wasStopped }: FinishOptions): Promise<ChildEnd> {
  const { child } = started
  const pumps = [
    pump(child.stdout, (chunk) => plan.onOutput(chunk, 'stdout')),
    pump(child.stderr, (chunk) => plan.onOutput(chunk, 'stderr')),
  ]
  const code = await child.exited
  killMarked(marks)
  guard.stop()
  const leftovers = await killLeftovers(plan.tokenDigest)
  await drained(pumps, DRAIN_MS)
  plan.records.remove(plan.runId)
  rmSync(plan.scratch, { recursive: true, force: true })
  return { code, stopped: wasStopped(), leftovers: plan.confinement.way === 'bubblewrap' ? 0 : leftovers }
}
