/** Implements `control pane`: one tmux window an agent, each following the log of its runs. */

import { closeSync, constants, fstatSync, openSync, readSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { CliContext } from '../../../channels/terminal/context.ts'
import { onInterrupt } from '../../../channels/terminal/signals.ts'
import {
  createTmux,
  type PaneChanges,
  type PaneOptions,
  paneEnvironment,
  sessionName,
  syncPane,
  watchPane,
} from '../../../control/pane/keep-pane.ts'
import { createLogFilter } from '../../../control/pane/log-filter.ts'
import { sleep } from '../../../kit/abort.ts'
import { errnoOf, errorText } from '../../../kit/errors.ts'
import { namesIn } from '../../../kit/proc.ts'
import { count } from '../../../kit/text.ts'
import { ownProgram } from '../../../service/own-program.ts'
import { runProgram } from '../../../service/unit/service-run.ts'
import { command, type Flags, type Given } from '../../args/command.ts'
import { commandError } from '../../exit.ts'
import { urlFlag } from './connect/control-flags.ts'
import { withControl } from './connect/with-control.ts'

const flags = {
  agent: {
    type: 'text',
    many: true,
    about: 'A window for this agent; several times for several (default: the agents of the control plane)',
  },
  logs: { type: 'boolean', about: 'A window for each log file in the folder, without asking the control plane' },
  logDir: { type: 'text', about: 'Where {agent}.log is (default: CONTROLPLANE_AIDER_LOG_DIR, else control/logs in the home)' },
  session: { type: 'text', about: 'The tmux session (default: CONTROLPLANE_AIDER_TMUX_SESSION, else clawdie-controlplane); "" means none' },
  tmuxServer: { type: 'text', about: 'The name of another tmux server, as for tmux -L' },
  watch: { type: 'boolean', about: 'Keep running: open and close windows as agents come and go, until Ctrl-C' },
  follow: { type: 'text', about: 'Follow this one file here, as each window does; shows only text and colours' },
  ...urlFlag,
} as const satisfies Flags
type PaneFlags = Given<typeof flags>

export const pane = command({
  flags,
  examples: [
    ['--watch', 'a window for each agent of the control plane, as they come and go'],
    ['--agent sysadmin --agent db-admin', 'for two agents, once'],
    ['--follow /var/log/agents/sysadmin.log', 'in this terminal'],
  ],
  run: (context, given) => (given.follow === undefined ? show(context, given) : follow(context, resolve(context.cwd, given.follow))),
})

async function follow({ process: { stdout, stderr } }: CliContext, path: string): Promise<void> {
  const filter = createLogFilter()
  using interrupt = onInterrupt(() => {})
  const show = (text: string) => stdout.write(filter.push(text))
  await followLog({ path, signal: interrupt.signal, show, note: (text) => stderr.write(`-- ${text} --\n`) })
}

async function show(context: CliContext, given: PaneFlags): Promise<void> {
  const { env, process } = context
  const session = sessionName(given.session ?? env.CONTROLPLANE_AIDER_TMUX_SESSION)
  if (!session.on)
    return void process.stderr.write('the session name is empty, so no pane is opened; set CONTROLPLANE_AIDER_TMUX_SESSION to a name\n')
  const program = Bun.which('tmux', { PATH: env.PATH ?? '' })
  if (program === null) throw commandError('tmux is not on the PATH; install the package "tmux"')
  if (session.changed) process.stderr.write(`the session is called "${session.name}": letters, digits, "_" and "-" are kept\n`)
  const logDir = resolve(context.cwd, given.logDir ?? (env.CONTROLPLANE_AIDER_LOG_DIR || join(context.home, 'control', 'logs')))
  const paneEnv = paneEnvironment({ ...env, BRAIDCLAW_HOME: context.home })
  const tmux = createTmux({
    program,
    session: session.name,
    env: paneEnv,
    follower: ({ path }) => [ownProgram(), 'control', 'pane', '--follow', path],
    run: (argv, own) => runProgram(own)(argv),
    server: given.tmuxServer,
  })
  const attach = `tmux ${given.tmuxServer === undefined ? '' : `-L ${given.tmuxServer} `}attach -t ${session.name}`
  await withAgents(context, given, logDir, (agents, signal) =>
    keep(context, { tmux, logDir, agents, signal, attach, watch: given.watch ?? false }),
  )
}

/** Asks the control plane only when neither agents nor log files are named. */
async function withAgents(
  context: CliContext,
  given: PaneFlags,
  logDir: string,
  use: (agents: PaneOptions['agents'], signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const named = given.agent
  if (named === undefined && !given.logs)
    return withControl(context, given, (control, { signal }) => use(async () => (await control.fleet.list()).map(({ id }) => id), signal))
  using interrupt = onInterrupt(() => {})
  const inFolder = () => (given.logs ? namesIn(logDir).flatMap((name) => (name.endsWith('.log') ? [name.slice(0, -4)] : [])) : [])
  await use(async () => [...(named ?? []), ...inFolder()], interrupt.signal)
}

async function keep(
  { process: { stdout, stderr } }: CliContext,
  { attach, watch, signal, ...options }: PaneOptions & { readonly signal: AbortSignal; readonly attach: string; readonly watch: boolean },
): Promise<void> {
  if (watch) {
    stderr.write(`ready: ${attach}; stop with Ctrl-C, the windows stay\n`)
    return watchPane({
      ...options,
      signal,
      sleep,
      changed: (done) => stderr.write(`${describeSync(done)}\n`),
      failed: (message) => stderr.write(`warning: ${message}\n`),
    })
  }
  const done = await syncPane(options).catch((error: unknown) => {
    throw commandError(errorText(error))
  })
  stdout.write(`${describeSync(done)}; ${attach}\n`)
}

function describeSync({ created, respawned, closed, windows }: PaneChanges): string {
  return `${count(windows, 'window')}: ${created} new, ${respawned} restarted, ${closed} closed`
}

type FollowOptions = {
  readonly path: string
  readonly signal: AbortSignal
  /** Receives decoded text, in order. */
  readonly show: (text: string) => void
  /** Receives notes of ours: the file is awaited, was replaced, cannot be read. */
  readonly note: (text: string) => void
}

/** Limits how much of an existing log is shown, in bytes. */
const shownAtFirst = 32_768
const chunkBytes = 65_536
const everyMs = 250

type OpenLog = { readonly file: number; readonly inode: number; position: number; readonly decoder: TextDecoder }

/** Follows a log file as `tail -F` does: waits for it, shows its end, what is appended, and the next file of that name. */
async function followLog({ path, signal, show, note }: FollowOptions): Promise<void> {
  let open: OpenLog | undefined
  let lastNote = ''
  const sayOnce = (text: string) => {
    if (text !== lastNote) note(text)
    lastNote = text
  }
  for (let isFirst = true; !signal.aborted; await sleep(everyMs, signal)) {
    if (open && wasReplaced(open, path)) {
      drain(open, show)
      closeSync(open.file)
      open = undefined
      sayOnce('the log starts again')
    }
    if (!open) {
      const opened = openLog(path, isFirst)
      if (typeof opened === 'string') sayOnce(opened)
      else {
        open = opened
        lastNote = ''
      }
      isFirst &&= typeof opened !== 'string'
    }
    if (open) drain(open, show)
    isFirst = false
  }
  if (open) closeSync(open.file)
}

/** Opens no link or FIFO that an agent puts into the folder. @returns why the log cannot be followed */
function openLog(path: string, atEnd: boolean): OpenLog | string {
  try {
    const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    const { size, ino } = fstatSync(file)
    if (fstatSync(file).isFile()) return { file, inode: ino, position: atEnd ? beginning(file, size) : 0, decoder: new TextDecoder() }
    closeSync(file)
    return `"${path}" is not a regular file, so it is not shown`
  } catch (error) {
    const code = errnoOf(error) ?? String(error)
    return code === 'ENOENT' ? `waiting for ${path}` : `"${path}" cannot be shown: ${code}`
  }
}

/** Returns where the first whole line of the shown end begins. */
function beginning(file: number, size: number): number {
  if (size <= shownAtFirst) return 0
  const from = size - shownAtFirst
  const bytes = new Uint8Array(shownAtFirst)
  const newline = bytes.subarray(0, readSync(file, bytes, 0, shownAtFirst, from)).indexOf(10)
  return newline < 0 ? from : from + newline + 1
}

function wasReplaced({ file, inode, position }: OpenLog, path: string): boolean {
  const found = statSync(path, { throwIfNoEntry: false })
  return found === undefined ? false : found.ino !== inode || fstatSync(file).size < position
}

function drain(open: OpenLog, show: (text: string) => void): void {
  const bytes = new Uint8Array(chunkBytes)
  for (;;) {
    const length = readSync(open.file, bytes, 0, chunkBytes, open.position)
    if (length === 0) return
    open.position += length
    show(open.decoder.decode(bytes.subarray(0, length), { stream: true }))
  }
}
