/** Runs one confined command: bubblewrap reports its child, waits for the limits, and everything in the PID namespace is gone at the end. */

import { closeSync, openSync, readFileSync, writeSync } from 'node:fs'
import type { Ended, SpawnPlan } from './port.ts'

export type Confined = {
  /** The whole command line, bubblewrap and its options included; `descriptors` are 3, 4 (status), 5 (go) in this order. */
  readonly argv: readonly string[]
  readonly env: { readonly [name: string]: string }
  /** File with the system-call filter. */
  readonly filter: string | undefined
  readonly plan: Pick<SpawnPlan, 'signal' | 'onOutput' | 'argv'>
  /** Called while the child waits. @returns what failed; then it never starts. */
  prepare(pid: number): string | undefined
}

/** bubblewrap reports on descriptor 4 and waits for a byte on 5; the system-call filter is read from 3. */
export const descriptors = { filter: '3', status: '4', go: '5' } as const

const DEATH_MS = 5_000
const SPIN_MS = 0.5
const KEPT = 2_000

/** How far the child came, as bubblewrap tells it. */
type Status = { child?: number; exit?: number; refused?: string }

export async function runConfined(confined: Confined): Promise<Ended> {
  const { plan } = confined
  if (plan.signal.aborted) return { ok: false, message: 'cancelled before it started' }
  const child = start(confined)
  if (child instanceof Error) return { ok: false, message: `cannot start the sandbox: ${child.message}` }
  const status: Status = {}
  const complaint = keeper()
  const kill = () => killAll(child.pid, status.child)
  plan.signal.addEventListener('abort', kill, { once: true })
  const streams = [
    pump(child.stdout, (chunk) => plan.onOutput(chunk, 'stdout')),
    pump(child.stderr, (chunk) => {
      complaint.take(chunk)
      plan.onOutput(chunk, 'stderr')
    }),
    follow({ child, status, confined, kill }),
  ]
  await child.exited
  plan.signal.removeEventListener('abort', kill)
  if (status.child !== undefined) await gone(status.child)
  await Promise.all(streams)
  return ended({ status, complaint: complaint.text(), signal: child.signalCode === null ? undefined : String(child.signalCode), plan })
}

/** The filter is opened anew for each: a shared descriptor would be at its end after the first. */
function start({ argv, env, filter }: Confined) {
  let opened = -1
  try {
    opened = openSync(filter ?? '/dev/null', 'r')
    return Bun.spawn([...argv], { cwd: '/', env: { ...env }, stdio: ['ignore', 'pipe', 'pipe', opened, 'pipe', 'pipe'], detached: true })
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error))
  } finally {
    closeQuietly(opened)
  }
}

type Started = Exclude<ReturnType<typeof start>, Error>

/** The child's number comes first and the exit code only when the command really ran. */
async function follow({ child, status, confined, kill }: { child: Started; status: Status; confined: Confined; kill(): void }) {
  const [, , , , report, go] = child.stdio
  if (typeof report !== 'number' || typeof go !== 'number') throw new Error('the sandbox was started without its report')
  const decoder = new TextDecoder()
  let text = ''
  await pump(Bun.file(report).stream(), (chunk) => {
    text += decoder.decode(chunk, { stream: true })
    const waiting = status.child === undefined
    status.child ??= number(/"child-pid": (\d+)\D/.exec(text)?.[1])
    status.exit ??= number(/"exit-code": (\d+)\D/.exec(text)?.[1])
    if (!waiting || status.child === undefined) return
    status.refused = confined.prepare(status.child)
    if (status.refused !== undefined || confined.plan.signal.aborted) kill()
    else release(go)
  })
  // The runtime leaves both to us.
  closeQuietly(report)
  closeQuietly(go)
}

function number(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Number(text)
}

function release(go: number): void {
  try {
    writeSync(go, 'g')
  } catch {
    // it died before; its end says why
  }
}

/** The first process of a PID namespace takes all others with it. */
function killAll(outer: number, inner: number | undefined): void {
  for (const pid of [inner, -outer]) {
    try {
      if (pid !== undefined) process.kill(pid, 'SIGKILL')
    } catch {
      // already dead
    }
  }
}

/** The namespace's first process becomes a zombie only after every other one in it is dead: mostly within the first look or two. */
async function gone(pid: number): Promise<void> {
  const began = performance.now()
  const until = began + DEATH_MS
  while (isAlive(pid) && performance.now() < began + SPIN_MS);
  while (isAlive(pid) && performance.now() < until) await Bun.sleep(1)
}

function isAlive(pid: number): boolean {
  try {
    const state = /^\d+ \(.*\) (\S)/s.exec(readFileSync(`/proc/${pid}/stat`, 'latin1'))?.[1]
    return state !== 'Z' && state !== 'X'
  } catch {
    return false
  }
}

type End = { readonly status: Status; readonly complaint: string; readonly signal?: string; readonly plan: Confined['plan'] }

function ended({ status, complaint, signal, plan }: End): Ended {
  if (status.refused !== undefined) return { ok: false, message: `cannot confine the command: ${status.refused}` }
  if (plan.signal.aborted) return { ok: true, code: null, signal: 'SIGKILL', leftBehind: false }
  if (status.exit !== undefined) return { ok: true, code: status.exit, leftBehind: false }
  if (signal !== undefined) return { ok: true, code: null, signal, leftBehind: false }
  return { ok: false, message: failure(complaint, plan.argv[0] ?? '') }
}

function failure(complaint: string, program: string): string {
  const why = /bwrap: execvp .*: (.*)/.exec(complaint)?.[1]
  if (why === undefined) return `the sandbox could not be set up: ${complaint.trim() || 'it ended without a word'}`
  const meaning = why === 'No such file or directory' ? 'there is no such program in the sandbox' : why
  return `cannot start ${JSON.stringify(program)}: ${meaning}`
}

/** Remembers how the error stream began: bubblewrap's own complaint, if it never came to the command. */
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

async function pump(stream: ReadableStream<Uint8Array>, take: (chunk: Uint8Array) => void): Promise<void> {
  const reader = stream.getReader()
  try {
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) take(piece.value)
  } catch {
    // a stream of a dead child
  }
}

function closeQuietly(descriptor: number): void {
  try {
    closeSync(descriptor)
  } catch {
    // it was never opened
  }
}
