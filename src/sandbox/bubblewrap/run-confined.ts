/** Starts a waiting sandbox and runs one command in it; when the command ends, every process in its PID namespace has ended. */

import { closeSync, openSync, readSync } from 'node:fs'
import { attempt } from '../../kit/errors.ts'
import { startTick } from '../../kit/proc.ts'
import type { SpawnPlan, SpawnResult } from '../contract.ts'
import type { Libc } from '../libc.ts'
import {
  argumentFile,
  commandLines,
  failureCode,
  failureMark,
  openInput,
  openOutput,
  openReport,
  type Pipe,
  type SandboxCommand,
  writeWhole,
} from '../pipes/command-pipes.ts'
import type { Watch } from '../process-limits.ts'

/**
 * bubblewrap reads the filter from 3, reports on 4, waits until 6 is closed, and reads its arguments from 7; the shell inside reads the
 * command from 5.
 */
export const descriptors = { filter: '3', status: '4', command: '5', go: '6', options: '7' } as const

export type Starting = {
  /** The command line: bubblewrap reads `options` where it says `--args` with the descriptor for options. */
  readonly argv: readonly string[]
  readonly options?: readonly string[]
  readonly env: { readonly [name: string]: string }
  /** Path of the file with the system-call filter. */
  readonly filter: string | undefined
  readonly libc: Libc
  /** The stdin of the command; absent: it is empty. */
  readonly stdin?: number | undefined
}

/** `report`, `stdout` and `stderr` are our ends of pipes for reading, `command` and `go` those for writing. */
export type WaitingSandbox = {
  readonly child: ReturnType<typeof spawn>
  readonly report: number
  readonly stdout: number
  readonly stderr: number
  readonly command: number
  readonly go: number
}

export type Confined = {
  readonly waiting: WaitingSandbox
  readonly command: SandboxCommand
  readonly plan: Pick<SpawnPlan, 'signal' | 'onOutput'>
  /** Called while the sandbox waits. @returns the failure; then the command never starts */
  prepare(pid: number): string | undefined
  /**
   * Called after the sandbox continues and before it receives the command. @returns the problem; then the sandbox never receives a command
   */
  inspect?(pid: number): Promise<string | undefined>
  /** Called when the command starts; \`kill\` ends it. */
  watch?(pid: number, kill: () => void): Watch
}

const DEATH_MS = 5_000
const SPIN_MS = 0.5
const KEPT = 2_000

/** The progress of the child, as bubblewrap reports it. */
type ChildStatus = { child?: number; exit?: number; refused?: string; watch?: Watch }

/** The waiting sandbox does not keep this process alive, and ends with it. */
export function startWaiting(starting: Starting): WaitingSandbox | Error {
  const pipes: Pipe[] = []
  const given: number[] = []
  try {
    for (const open of [openReport, openOutput, openOutput, openInput]) pipes.push(open(starting.libc))
    // The runtime opens the filter file for each start: a shared descriptor would be at its end after the first start.
    given.push(openSync(starting.filter ?? '/dev/null', 'r'), argumentFile(starting.libc, starting.options ?? []))
    const [report, stdout, stderr, command] = pipes
    const [filter, options] = given
    if (!report || !stdout || !stderr || !command || filter === undefined || options === undefined) throw new Error('a pipe is missing')
    const child = spawn(starting, [stdout.theirs, stderr.theirs, filter, report.theirs, command.theirs, options])
    child.unref()
    const go = child.stdio[6]
    if (typeof go !== 'number') throw new Error('the runtime gave no descriptor')
    return { child, report: report.ours, stdout: stdout.ours, stderr: stderr.ours, command: command.ours, go }
  } catch (error) {
    for (const { ours } of pipes) closeSync(ours)
    return error instanceof Error ? error : new Error(String(error))
  } finally {
    // A pipe ends only when our copy of its writing end is closed too.
    for (const descriptor of [...pipes.map(({ theirs }) => theirs), ...given]) closeSync(descriptor)
  }
}

type ChildDescriptors = readonly [stdout: number, stderr: number, filter: number, report: number, command: number, options: number]

function spawn({ argv, env, stdin }: Starting, [stdout, stderr, filter, report, command, options]: ChildDescriptors) {
  return Bun.spawn([...argv], {
    cwd: '/',
    env: { ...env },
    stdio: [stdin ?? 'ignore', stdout, stderr, filter, report, command, 'pipe', options],
    detached: true,
  })
}

export function isWaiting({ child }: WaitingSandbox): boolean {
  return child.exitCode === null && child.signalCode === null
}

/**
 * Ends a sandbox that gets no command. Until bubblewrap starts the command, its inner process survives the end of the outer one. So this
 * function kills both at once as a group, because our process may be about to end, and then kills the inner one by its process number in
 * case it has left the group. It closes the descriptors only after both have ended: closing them earlier would let the inner process
 * continue.
 */
export async function discard({ child, report, stdout, stderr, command, go }: WaitingSandbox): Promise<void> {
  killAll(child.pid, undefined)
  await child.exited
  const inner = number(/"child-pid": (\d+)\D/.exec(readNow(report))?.[1])
  killAll(child.pid, inner)
  if (inner !== undefined) await waitForExit(inner)
  for (const descriptor of [report, stdout, stderr, command, go]) closeSync(descriptor)
}

/** One read returns the whole report. */
function readNow(descriptor: number): string {
  const bytes = Buffer.alloc(4_096)
  return attempt(() => bytes.toString('utf8', 0, readSync(descriptor, bytes))) ?? ''
}

export async function runConfined({ waiting, command, plan, prepare, inspect, watch }: Confined): Promise<SpawnResult> {
  const { child } = waiting
  const status: ChildStatus = {}
  const complaint = keeper()
  const mark = failureMark()
  const kill = () => killAll(child.pid, status.child)
  child.ref()
  plan.signal.addEventListener('abort', kill, { once: true })
  const begin = async (pid: number) => {
    status.refused = prepare(pid)
    if (status.refused !== undefined || plan.signal.aborted) kill()
    closeSync(waiting.go)
    status.refused ??= await inspect?.(pid)
    if (status.refused !== undefined) kill()
    else status.watch = watch?.(pid, kill)
    await send(waiting.command, status.refused === undefined ? commandLines({ ...command, mark, descriptor: descriptors.command }) : '')
  }
  const streams = [
    pump(waiting.stdout, (chunk) => plan.onOutput(chunk, 'stdout')),
    pump(waiting.stderr, (chunk) => {
      complaint.take(chunk)
      plan.onOutput(chunk, 'stderr')
    }),
    follow({ waiting, status, begin }),
  ]
  await child.exited
  plan.signal.removeEventListener('abort', kill)
  if (status.child !== undefined) await waitForExit(status.child)
  await Promise.all(streams)
  return ended({ status, complaint: complaint.text(), mark, signal: child.signalCode, plan, program: command.argv[0] ?? '' })
}

/** The report gives the child's process number first, and an exit code only if the command really ran. */
async function follow({
  waiting,
  status,
  begin,
}: {
  readonly waiting: WaitingSandbox
  readonly status: ChildStatus
  begin(pid: number): Promise<void>
}) {
  const decoder = new TextDecoder()
  let text = ''
  await pump(waiting.report, (chunk) => {
    text += decoder.decode(chunk, { stream: true })
    const known = status.child
    status.child ??= number(/"child-pid": (\d+)\D/.exec(text)?.[1])
    status.exit ??= number(/"exit-code": (\d+)\D/.exec(text)?.[1])
    if (known === undefined && status.child !== undefined) void begin(status.child)
  })
  if (status.child !== undefined) return
  closeSync(waiting.command)
  closeSync(waiting.go)
}

function number(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Number(text)
}

/** Always closes the descriptor, even if the reader has ended before it read everything: its exit explains why. */
async function send(descriptor: number, text: string): Promise<void> {
  await writeWhole(descriptor, text)
  closeSync(descriptor)
}

/** Killing the first process of a PID namespace ends all others in it. */
function killAll(outer: number, inner: number | undefined): void {
  // A process that has ended already is no error.
  for (const pid of [inner, -outer]) attempt(() => pid !== undefined && process.kill(pid, 'SIGKILL'))
}

/**
 * Waits for the first process of the namespace. It becomes a zombie only after every other process in it has ended, mostly within one or
 * two checks.
 */
async function waitForExit(pid: number): Promise<void> {
  const began = performance.now()
  const until = began + DEATH_MS
  while (startTick(pid) !== undefined && performance.now() < began + SPIN_MS);
  while (startTick(pid) !== undefined && performance.now() < until) await Bun.sleep(1)
}

type EndFacts = {
  readonly status: ChildStatus
  readonly complaint: string
  readonly mark: string
  readonly signal: unknown
  readonly plan: Confined['plan']
  readonly program: string
}

function ended({ status, complaint, mark, signal, plan, program }: EndFacts): SpawnResult {
  const stopped = status.watch?.end()
  if (status.refused !== undefined) return { ok: false, message: `cannot confine the command: ${status.refused}` }
  if (stopped !== undefined) return { ok: true, code: null, signal: 'SIGKILL', leftBehind: false, stopped }
  if (plan.signal.aborted) return { ok: true, code: null, signal: 'SIGKILL', leftBehind: false }
  if (status.exit === failureCode && complaint.startsWith(mark))
    return { ok: false, message: `cannot start ${JSON.stringify(program)}: ${complaint.slice(mark.length).trim()}` }
  if (status.exit !== undefined) return { ok: true, code: status.exit, leftBehind: false }
  if (signal !== null) return { ok: true, code: null, signal: String(signal), leftBehind: false }
  return { ok: false, message: `${setUpFailure}${complaint.trim() || 'it ended without a message'}` }
}

const setUpFailure = 'the sandbox could not be set up: '

/** The command never ran, because the machine does not let the sandbox work. */
export function isSetUpFailure(ended: SpawnResult): ended is Extract<SpawnResult, { ok: false }> {
  return !ended.ok && ended.message.startsWith(setUpFailure)
}

/** Keeps the start of the error stream: it holds bubblewrap's own message if the command never started. */
function keeper() {
  const chunks: Uint8Array[] = []
  let size = 0
  return {
    take(chunk: Uint8Array) {
      if (size < KEPT) chunks.push(chunk.slice(0, KEPT - size))
      size += chunk.length
    },
    text: () => Buffer.concat(chunks).toString(),
  }
}

/** Reads a pipe to its end and closes it. */
async function pump(descriptor: number, take: (chunk: Uint8Array) => void): Promise<void> {
  const reader = Bun.file(descriptor).stream().getReader()
  try {
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) take(piece.value)
  } catch {
    // The pipe belonged to a child that has ended.
  }
  closeSync(descriptor)
}
