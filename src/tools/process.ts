/** Child processes: started without a shell of ours, in a group of their own, and ended as a group. */

export type Environment = { readonly [name: string]: string }

/** `argv[0]` is the executable, absolute or on the PATH of `env`; `env` is all the child gets. */
export type SpawnPlan = {
  readonly argv: readonly string[]
  readonly cwd: string
  readonly env: Environment
  /** On abort the group gets SIGTERM, and 250 ms later SIGKILL. */
  readonly signal: AbortSignal
  /** For a sandbox, see its port. */
  readonly readablePaths?: readonly { readonly path: string; readonly from?: string }[]
  readonly readOnly?: boolean
  /** Pieces as they arrive; order is kept within each stream and, as far as the pipes tell, between them. */
  onOutput(chunk: Uint8Array, from: 'stdout' | 'stderr'): void
}

/** `leftBehind`: the command ended but processes of its group had not, and were killed. `undone`: what of its work the sandbox did not leave. `sandbox`: what confined it. */
export type Ended =
  | {
      readonly ok: true
      readonly code: number | null
      readonly signal?: string
      readonly leftBehind: boolean
      readonly undone?: readonly string[]
      readonly sandbox?: 'bubblewrap' | 'landlock' | 'none'
    }
  | { readonly ok: false; readonly message: string }

/** Resolves when the child has ended and what was left of its group has got SIGKILL; never rejects. A sandbox wraps this function. */
export type Spawn = (plan: SpawnPlan) => Promise<Ended>

export const fixedPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

const TERM_GRACE_MS = 250
const DRAIN_MS = 250

/** git would obey the settings, and so run the programs, of any folder that has a HEAD, `objects`, `refs` and a `config` in it. */
const carefulGit = { GIT_TERMINAL_PROMPT: '0', GIT_CONFIG_PARAMETERS: "'safe.bareRepository=explicit'" } as const

/** Built from nothing: no key, token, proxy or loader option of ours reaches a child. */
export function cleanEnvironment({ home, timeZone }: { readonly home: string; readonly timeZone?: string }): Environment {
  const base = { PATH: fixedPath, HOME: home, LANG: 'C.UTF-8', TERM: 'dumb', NO_COLOR: '1', PAGER: 'cat', ...carefulGit }
  return timeZone === undefined ? base : { ...base, TZ: timeZone }
}

/**
 * Without a sandbox. A process that leaves the group (setsid) outlives it: only a PID namespace ends those. What it holds open is not
 * waited for longer than 250 ms.
 */
export const spawnPlain: Spawn = async (plan) => {
  if (plan.signal.aborted) return { ok: false, message: 'cancelled before it started' }
  const child = start(plan)
  if (child instanceof Error) return { ok: false, message: `cannot start ${JSON.stringify(plan.argv[0])}: ${reason(child)}` }
  const group = endable(child.pid)
  plan.signal.addEventListener('abort', group.end, { once: true })
  const pumps = [
    pump(child.stdout, (chunk) => plan.onOutput(chunk, 'stdout')),
    pump(child.stderr, (chunk) => plan.onOutput(chunk, 'stderr')),
  ]
  await child.exited
  plan.signal.removeEventListener('abort', group.end)
  const leftBehind = group.kill()
  await drained(pumps)
  return {
    ok: true,
    code: child.signalCode === null ? child.exitCode : null,
    signal: child.signalCode === null ? undefined : String(child.signalCode),
    leftBehind,
  }
}

function start({ argv, cwd, env }: SpawnPlan) {
  try {
    return Bun.spawn([...argv], { cwd, env: { ...env }, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe', detached: true })
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error))
  }
}

function reason(error: Error): string {
  const code = 'code' in error ? String(error.code) : ''
  const meanings: { readonly [code: string]: string } = {
    ENOENT: 'there is no such program, or its folder is gone',
    EACCES: 'it may not be executed',
    E2BIG: 'its arguments are too long',
    ENOEXEC: 'it is no program this system can run',
  }
  return meanings[code] ?? error.message
}

/** The child leads its own session and group, whose number is its pid. */
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

/** True when anyone was there to hear it. */
function signalGroup(pid: number, name: 'SIGTERM' | 'SIGKILL'): boolean {
  try {
    return process.kill(-pid, name)
  } catch {
    return false
  }
}

type Pump = { readonly done: Promise<void>; stop(): void }

function pump(stream: ReadableStream<Uint8Array>, take: (chunk: Uint8Array) => void): Pump {
  const reader = stream.getReader()
  const run = async () => {
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) take(piece.value)
  }
  return { done: run().catch(() => {}), stop: () => void reader.cancel().catch(() => {}) }
}

/** With the group dead the pipes end by themselves; only a process outside of it can hold them open. */
async function drained(pumps: readonly Pump[]): Promise<void> {
  const stop = setTimeout(() => {
    for (const { stop } of pumps) stop()
  }, DRAIN_MS)
  await Promise.all(pumps.map(({ done }) => done))
  clearTimeout(stop)
}
