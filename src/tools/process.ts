/** Starts child processes without a shell, each in its own process group, and ends them as a group. */

import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { atEnd, attempt, errnoOf } from '../kit/errors.ts'
import type { ChildEnvironment, SpawnPlan as ConfinedPlan, SpawnResult as ConfinedResult, SandboxName } from '../sandbox/contract.ts'
import type { Transfer } from '../security/command/transfer.ts'

/** `signal`: an abort sends SIGTERM to the group, and SIGKILL 250 ms later. Only a sandbox uses what concerns views, mounts and networks. */
export type SpawnPlan = ConfinedPlan & {
  /** A git fetch, pull or push; the function that starts commands for a conversation carries it out, a sandbox never sees it. */
  readonly transfer?: Transfer
  /** One pipe for stdout and stderr, so that the order between them is exact; all of it is then "stdout". It is closed at the end. */
  readonly together?: { readonly ours: number; readonly theirs: number }
}

/**
 * `leftBehind`: the command ended before other processes of its group, which were then killed. `refused`: one of the `undone` changes is
 * something that other programs run or obey, so the call counts as denied. `sandbox`: the sandbox that confined the command.
 */
export type SpawnResult =
  | (Extract<ConfinedResult, { ok: true }> & { readonly refused?: boolean; readonly sandbox?: SandboxName })
  | Extract<ConfinedResult, { ok: false }>

/** Resolves when the child has ended and the rest of its group has received SIGKILL; never rejects. A sandbox wraps this function. */
export type Spawn = (plan: SpawnPlan) => Promise<SpawnResult>

export const fixedPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

const TERM_GRACE_MS = 250
const DRAIN_MS = 250

/**
 * Keeps git from obeying the settings (and running the programs) of any folder that contains a HEAD, `objects`, `refs` and a `config`.
 */
const carefulGit = { GIT_TERMINAL_PROMPT: '0', GIT_CONFIG_PARAMETERS: "'safe.bareRepository=explicit'" } as const

/** Builds the environment from scratch, so that none of our keys, tokens, proxy or loader options reaches a child. */
export function cleanEnvironment({ home, timeZone }: { readonly home: string; readonly timeZone?: string }): ChildEnvironment {
  const base = { PATH: fixedPath, HOME: home, LANG: 'C.UTF-8', TERM: 'dumb', NO_COLOR: '1', PAGER: 'cat', ...carefulGit }
  return timeZone === undefined ? base : { ...base, TZ: timeZone }
}

/**
 * Runs a command without a sandbox. A process that leaves the group (setsid) survives, because only a PID namespace could end it. This
 * function waits at most 250 ms for pipes that such a process keeps open.
 */
export const spawnPlain: Spawn = async (plan) => {
  if (plan.together === undefined) return run(plan, { stdout: 'pipe', stderr: 'pipe' })
  const { ours, theirs } = plan.together
  const ended = run(plan, { stdout: theirs, stderr: theirs, from: ours })
  closeSync(theirs)
  return ended.finally(() => closeSync(ours))
}

/** `from` is the descriptor to read both streams from. It starts the child before it waits for anything. */
type Streams = { readonly stdout: 'pipe' | number; readonly stderr: 'pipe' | number; readonly from?: number }

async function run(plan: SpawnPlan, streams: Streams): Promise<SpawnResult> {
  if (plan.signal.aborted) return { ok: false, message: 'cancelled before it started' }
  const child = start(plan, streams)
  if (child instanceof Error) return { ok: false, message: `cannot start ${JSON.stringify(plan.argv[0])}: ${reason(child)}` }
  const group = endable(child.pid)
  plan.signal.addEventListener('abort', group.end, { once: true })
  const pumps = pumpsOf(streams.from === undefined ? child : { stdout: Bun.file(streams.from).stream(), stderr: child.stderr }, plan)
  await child.exited
  plan.signal.removeEventListener('abort', group.end)
  const leftBehind = group.kill()
  await drained(pumps, DRAIN_MS)
  return {
    ok: true,
    code: child.signalCode === null ? child.exitCode : null,
    signal: child.signalCode === null ? undefined : String(child.signalCode),
    leftBehind,
  }
}

function start({ argv, cwd, env, stdin }: SpawnPlan, { stdout, stderr }: Streams) {
  try {
    const input = typeof stdin === 'string' ? Buffer.from(`${stdin}\n`) : (stdin ?? 'ignore')
    return Bun.spawn([...argv], { cwd, env: { ...env }, stdin: input, stdout, stderr, detached: true })
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error))
  }
}

function reason(error: Error): string {
  const meanings: { readonly [code: string]: string } = {
    ENOENT: 'the program or its folder does not exist',
    EACCES: 'it may not be executed',
    E2BIG: 'its arguments are too long',
    ENOEXEC: 'it is not a program that this system can run',
  }
  return meanings[errnoOf(error) ?? ''] ?? error.message
}

/** The child leads its own session and group; the group number is the child's pid. */
function endable(pid: number): { end(): void; kill(): boolean } {
  let later: ReturnType<typeof setTimeout> | undefined
  return {
    end() {
      signalGroup(pid, 'SIGTERM')
      later = setTimeout(() => signalGroup(pid, 'SIGKILL'), TERM_GRACE_MS)
    },
    kill() {
      clearTimeout(later)
      return signalGroup(pid, 'SIGKILL')
    },
  }
}

/** @returns true when the group still contained a process */
function signalGroup(pid: number, name: 'SIGTERM' | 'SIGKILL'): boolean {
  return attempt(() => process.kill(-pid, name)) ?? false
}

export type Pump = { readonly done: Promise<void>; stop(): void }

/** A stream that the child writes into a descriptor of ours is not a stream here, only its number. */
function pumpsOf(
  { stdout, stderr }: { readonly [from in 'stdout' | 'stderr']: number | ReadableStream<Uint8Array> },
  plan: SpawnPlan,
): Pump[] {
  const pumps: Pump[] = []
  if (typeof stdout !== 'number') pumps.push(pump(stdout, (chunk) => plan.onOutput(chunk, 'stdout')))
  if (typeof stderr !== 'number') pumps.push(pump(stderr, (chunk) => plan.onOutput(chunk, 'stderr')))
  return pumps
}

export function pump(stream: ReadableStream<Uint8Array>, take: (chunk: Uint8Array) => void): Pump {
  const reader = stream.getReader()
  const run = async () => {
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) take(piece.value)
  }
  return { done: run().catch(() => {}), stop: () => void reader.cancel().catch(() => {}) }
}

/** The pipes end when the group has ended; only a process outside the group can keep them open. */
export async function drained(pumps: readonly Pump[], waitMs: number): Promise<void> {
  const stop = setTimeout(() => {
    for (const { stop } of pumps) stop()
  }, waitMs)
  await Promise.all(pumps.map(({ done }) => done))
  clearTimeout(stop)
}

/** Returns a descriptor of a file with this content, which has no name any more: a pipe would need somebody who writes as fast as it is read. */
export function openContent(content: string | Uint8Array): number {
  const folder = mkdtempSync(join(tmpdir(), 'braidclaw-input-'))
  using _end = atEnd(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'input')
  writeFileSync(file, content, { mode: 0o600 })
  return openSync(file, 'r')
}
