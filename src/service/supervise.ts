/** Keeps a program running: restarts it with growing delays while it fails at once, and ends it together with its process group. */

import { attempt, errorText } from '../kit/errors.ts'

export type ReportEvent = (level: 'info' | 'warn', event: string, fields: { readonly [key: string]: unknown }) => void

export type SuperviseOptions = {
  /** The name in reports. */
  readonly name: string
  /** A shell command line from the operator's configuration. */
  readonly command: string
  readonly cwd: string
  readonly env: { readonly [name: string]: string }
  readonly report: ReportEvent
  /** Receives each line of stderr, and of stdout, which goes nowhere else. */
  readonly onLine: (line: string) => void
  /** Called at each start with the process that leads the new process group. */
  readonly started?: (pid: number) => void
  /** Called at each end or failed start, with the delay until the next start. */
  readonly ended?: (againInMs: number) => void
  /** Tells whether it has done work since it was started; then the delay is the shortest again, as after a steady minute. */
  readonly worked?: () => boolean
  /** Milliseconds from any fixed origin. */
  readonly now: () => number
  /** Settles after `ms`, or at once when the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>
}

export type Supervised = {
  /** Sends SIGTERM to the group, and SIGKILL after `graceMs` ms. Resolves when no process of the group is left. */
  stop(graceMs?: number): Promise<void>
  /** Returns the process id while it runs. */
  pid(): number | undefined
}

const FIRST_WAIT_MS = 1_000
const LONGEST_WAIT_MS = 60_000
/** A program that ran this long gets the shortest delay again. */
const STEADY_MS = 60_000
const LONGEST_LINE = 4_096

/** Starts at once. No failure of the program throws or ends us, not even a command that does not exist. */
export function supervise(options: SuperviseOptions): Supervised {
  const stopping = new AbortController()
  const state: { child?: Child; ends: number; reportedAt: number } = { ends: 0, reportedAt: Number.NEGATIVE_INFINITY }

  async function keepRunning(): Promise<void> {
    for (let wait = FIRST_WAIT_MS; !stopping.signal.aborted; wait = Math.min(wait * 2, LONGEST_WAIT_MS)) {
      const began = options.now()
      const how = await runOnce()
      if (stopping.signal.aborted) return
      if (options.worked?.() || options.now() - began >= STEADY_MS) wait = FIRST_WAIT_MS
      options.ended?.(wait)
      reportEnd(how, wait)
      await options.sleep(wait, stopping.signal)
    }
  }

  async function runOnce(): Promise<string> {
    const child = start(options)
    if (typeof child === 'string') return child
    state.child = child
    options.started?.(child.pid)
    options.report('info', 'bridge started', { bridge: options.name, pid: child.pid })
    void listen(child.stdout, options.onLine)
    void listen(child.stderr, options.onLine)
    await child.exited
    endGroup(child.pid, 'SIGKILL')
    delete state.child
    return child.signalCode === null ? `exit code ${child.exitCode}` : `${child.signalCode}`
  }

  /** Reports each end at first; if it ends again and again, once a minute with the count. */
  function reportEnd(how: string, wait: number): void {
    state.ends++
    if (wait > 8 * FIRST_WAIT_MS && options.now() - state.reportedAt < STEADY_MS) return
    options.report('warn', 'bridge ended', { bridge: options.name, how, ends: state.ends, againInMs: wait })
    state.reportedAt = options.now()
    state.ends = 0
  }

  const done = keepRunning()
  return {
    pid: () => state.child?.pid,
    async stop(graceMs = 5_000) {
      stopping.abort()
      const { child } = state
      if (child) {
        endGroup(child.pid, 'SIGTERM')
        const impatient = setTimeout(() => endGroup(child.pid, 'SIGKILL'), graceMs)
        await child.exited
        clearTimeout(impatient)
      }
      await done
    },
  }
}

type Child = Bun.Subprocess<'ignore', 'pipe', 'pipe'>

/**
 * Leads the group: waits for the command. On SIGTERM (from us, or from the kernel because we died) it terminates the whole group, waits,
 * and kills what is left. A command that ends by itself leaves its children to us.
 * It ignores TERM and PIPE by then: its output may have no reader, and the kernel may send the signal several times.
 */
const warden = `trap 'trap "" TERM PIPE; kill -TERM 0; wait "$!"; kill -KILL 0' TERM; /bin/sh -c "$1" & wait "$!"`

/** Starts it in a process group of its own, which ends with us even if we are killed. */
function start({ command, cwd, env }: SuperviseOptions): Child | string {
  const shell = ['/bin/sh', '-c', warden, 'sh', command]
  const setpriv = Bun.which('setpriv', { PATH: '/usr/bin:/bin' })
  try {
    return Bun.spawn(setpriv ? [setpriv, '--pdeathsig', 'TERM', ...shell] : shell, {
      cwd,
      env: { ...env },
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
      detached: true,
    })
  } catch (error) {
    return `cannot be started: ${errorText(error)}`
  }
}

/** Signals the group; does nothing if the group no longer exists. */
export function endGroup(leader: number, signal: 'SIGTERM' | 'SIGKILL'): void {
  // 0 and 1 would address our own group and every process.
  if (!Number.isSafeInteger(leader) || leader < 2) return
  attempt(() => process.kill(-leader, signal))
}

async function listen(stream: ReadableStream<Uint8Array>, onLine: (line: string) => void): Promise<void> {
  const decoder = new TextDecoder()
  let held = ''
  try {
    for await (const piece of stream) {
      const lines = `${held}${decoder.decode(piece, { stream: true })}`.split('\n')
      held = lines.pop() ?? ''
      for (const line of lines) onLine(line.slice(0, LONGEST_LINE))
      if (held.length > LONGEST_LINE) held = held.slice(0, LONGEST_LINE)
    }
  } catch {}
  if (held !== '') onLine(held)
}
