/** Keeps a program running: started again when it ends, later and later while it keeps ending at once, and ended as a group. */

export type Report = (level: 'info' | 'warn', event: string, fields: { readonly [key: string]: unknown }) => void

export type SuperviseOptions = {
  /** What it is called in reports. */
  readonly name: string
  /** A command line for the shell; the operator's own words. */
  readonly command: string
  readonly cwd: string
  readonly env: { readonly [name: string]: string }
  readonly report: Report
  /** A line that it said on stderr, or on stdout, which leads nowhere else. */
  readonly hear: (line: string) => void
  /** Each time it runs: its process, which leads a group of its own. */
  readonly started?: (pid: number) => void
  /** Each time it has ended, or could not be started: how long until the next time. */
  readonly ended?: (againInMs: number) => void
  /** Whether it has done its work since it was started: then the wait is the shortest again, as after a steady minute. */
  readonly worked?: () => boolean
  /** Milliseconds, from any beginning. */
  readonly now: () => number
  /** Settles after `ms`, or at once when the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>
}

export type Supervised = {
  /** Ends it, waiting up to `graceMs` before it is killed. Resolves when nothing of its group is left. */
  stop(graceMs?: number): Promise<void>
  /** While it runs. */
  pid(): number | undefined
}

const FIRST_WAIT_MS = 1_000
const LONGEST_WAIT_MS = 60_000
/** Whoever ran this long gets the shortest wait again. */
const STEADY_MS = 60_000
const LONGEST_LINE = 4_096

/** Starts at once. Nothing it does, not even being no program at all, throws or ends us. */
export function supervise(options: SuperviseOptions): Supervised {
  const leaving = new AbortController()
  const state: { child?: Child; ends: number; toldAt: number } = { ends: 0, toldAt: Number.NEGATIVE_INFINITY }

  async function keepRunning(): Promise<void> {
    for (let wait = FIRST_WAIT_MS; !leaving.signal.aborted; wait = Math.min(wait * 2, LONGEST_WAIT_MS)) {
      const began = options.now()
      const how = await runOnce()
      if (leaving.signal.aborted) return
      if (options.worked?.() || options.now() - began >= STEADY_MS) wait = FIRST_WAIT_MS
      options.ended?.(wait)
      tell(how, wait)
      await options.sleep(wait, leaving.signal)
    }
  }

  async function runOnce(): Promise<string> {
    const child = start(options)
    if (typeof child === 'string') return child
    state.child = child
    options.started?.(child.pid)
    options.report('info', 'bridge started', { bridge: options.name, pid: child.pid })
    void listen(child.stdout, options.hear)
    void listen(child.stderr, options.hear)
    await child.exited
    endGroup(child.pid, 'SIGKILL')
    delete state.child
    return child.signalCode === null ? `exit code ${child.exitCode}` : `${child.signalCode}`
  }

  /** Each end at first; of one that ends again and again, once a minute and how often. */
  function tell(how: string, wait: number): void {
    state.ends++
    if (wait > 8 * FIRST_WAIT_MS && options.now() - state.toldAt < STEADY_MS) return
    options.report('warn', 'bridge ended', { bridge: options.name, how, ends: state.ends, againInMs: wait })
    state.toldAt = options.now()
    state.ends = 0
  }

  const done = keepRunning()
  return {
    pid: () => state.child?.pid,
    async stop(graceMs = 5_000) {
      leaving.abort()
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
 * Leads the group: waits for the command, and when it is told to end (by us, or by the kernel because we died) tells the whole group, waits,
 * and takes with it what is still there. A command that ends by itself leaves its children to us.
 * Nobody may hear us any more by then, and the kernel may say it several times.
 */
const warden = `trap 'trap "" TERM PIPE; kill -TERM 0; wait "$!"; kill -KILL 0' TERM; /bin/sh -c "$1" & wait "$!"`

/** In a group of its own, which ends with us even should we die without a word. */
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
    return `cannot be started: ${error instanceof Error ? error.message : String(error)}`
  }
}

/** Of a group that is no more, nothing. */
export function endGroup(leader: number, signal: 'SIGTERM' | 'SIGKILL'): void {
  // 0 and 1 would mean ourselves and everybody.
  if (!Number.isSafeInteger(leader) || leader < 2) return
  try {
    process.kill(-leader, signal)
  } catch {}
}

async function listen(stream: ReadableStream<Uint8Array>, hear: (line: string) => void): Promise<void> {
  const decoder = new TextDecoder()
  let held = ''
  try {
    for await (const piece of stream) {
      const lines = `${held}${decoder.decode(piece, { stream: true })}`.split('\n')
      held = lines.pop() ?? ''
      for (const line of lines) hear(line.slice(0, LONGEST_LINE))
      if (held.length > LONGEST_LINE) held = held.slice(0, LONGEST_LINE)
    }
  } catch {}
  if (held !== '') hear(held)
}
