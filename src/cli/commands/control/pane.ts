/** Implements `control pane`: one tmux window an agent, each following the log of its runs. */

import { readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { CliContext } from '../../../channels/terminal/context.ts'
import { onInterrupt } from '../../../channels/terminal/signals.ts'
import { followLog } from '../../../control/pane/follow-log.ts'
import { type PaneDone, type PaneOptions, syncPane, watchPane } from '../../../control/pane/keep-pane.ts'
import { createLogFilter } from '../../../control/pane/log-filter.ts'
import { createTmux, paneEnvironment, sessionName } from '../../../control/pane/tmux.ts'
import { count } from '../../../kit/count.ts'
import { ownProgram } from '../../../service/own-program.ts'
import { pause } from '../../../service/sleep.ts'
import { runProgram } from '../../../service/unit/run-program.ts'
import type { Command, Flags, Given } from '../../args/command.ts'
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
  session: { type: 'text', about: 'The tmux session (default: CONTROLPLANE_AIDER_TMUX_SESSION, else clawdie-controlplane); "" is none' },
  tmuxServer: { type: 'text', about: 'The name of another tmux server, as for tmux -L' },
  watch: { type: 'boolean', about: 'Go on: open and close windows as agents come and go, until Ctrl-C' },
  follow: { type: 'text', about: 'Follow this one file here, as each window does; shows only text and colours' },
  ...urlFlag,
} as const satisfies Flags
type PaneFlags = Given<typeof flags>

export const pane = {
  flags,
  examples: [
    ['--watch', 'a window for each agent of the control plane, as they come and go'],
    ['--agent sysadmin --agent db-admin', 'for two agents, once'],
    ['--follow /var/log/agents/sysadmin.log', 'in this terminal'],
  ],
  run: (context, given) => (given.follow === undefined ? show(context, given) : follow(context, resolve(context.cwd, given.follow))),
} as const satisfies Command<typeof flags>

async function follow({ process: { stdout, stderr } }: CliContext, path: string): Promise<void> {
  const filter = createLogFilter()
  const interrupt = onInterrupt(() => {})
  await followLog({
    path,
    signal: interrupt.signal,
    show: (text) => stdout.write(filter.push(text)),
    note: (text) => stderr.write(`-- ${text} --\n`),
    pause,
  }).finally(interrupt.stop)
}

async function show(context: CliContext, given: PaneFlags): Promise<void> {
  const { env, process } = context
  const session = sessionName(given.session ?? env.CONTROLPLANE_AIDER_TMUX_SESSION)
  if (!session.on)
    return void process.stderr.write('the session name is empty, so there is no pane; set CONTROLPLANE_AIDER_TMUX_SESSION to a name\n')
  const program = Bun.which('tmux', { PATH: env.PATH ?? '' })
  if (program === null) throw commandError('there is no tmux on the PATH; install the package "tmux"')
  if (session.changed) process.stderr.write(`the session is called "${session.name}": letters, digits, "_" and "-" are kept\n`)
  const logDir = resolve(context.cwd, given.logDir ?? (env.CONTROLPLANE_AIDER_LOG_DIR || join(context.home, 'control', 'logs')))
  const paneEnv = paneEnvironment({ ...env, BRAIDCLAW_HOME: context.home })
  const tmux = createTmux({
    program,
    session: session.name,
    env: paneEnv,
    follower: ({ path }) => [ownProgram(), 'control', 'pane', '--follow', path],
    run: (argv, own) => runProgram(own)(argv),
    ...(given.tmuxServer === undefined ? {} : { server: given.tmuxServer }),
  })
  const attach = `tmux ${given.tmuxServer === undefined ? '' : `-L ${given.tmuxServer} `}attach -t ${session.name}`
  await withAgents(context, given, logDir, (agents, signal) =>
    keep(context, { tmux, logDir, agents, signal, attach, watch: given.watch ?? false }),
  )
}

type Agents = PaneOptions['agents']

/** The control plane is asked only when neither agents nor log files are named. */
async function withAgents(
  context: CliContext,
  given: PaneFlags,
  logDir: string,
  use: (agents: Agents, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const named = given.agent
  if (named === undefined && !given.logs)
    return withControl(context, given, (control, { signal }) => use(async () => (await control.fleet.list()).map(({ id }) => id), signal))
  const interrupt = onInterrupt(() => {})
  const inFolder = () => (given.logs ? logsIn(logDir) : [])
  await use(async () => [...(named ?? []), ...inFolder()], interrupt.signal).finally(interrupt.stop)
}

function logsIn(folder: string): string[] {
  try {
    return readdirSync(folder).flatMap((name) => (name.endsWith('.log') ? [name.slice(0, -4)] : []))
  } catch {
    return []
  }
}

type Kept = PaneOptions & { readonly signal: AbortSignal; readonly attach: string; readonly watch: boolean }

async function keep({ process: { stdout, stderr } }: CliContext, { attach, watch, signal, ...options }: Kept): Promise<void> {
  if (watch) {
    stderr.write(`ready: ${attach}; stop with Ctrl-C, the windows stay\n`)
    return watchPane({
      ...options,
      signal,
      pause,
      changed: (done) => stderr.write(`${describeSync(done)}\n`),
      failed: (message) => stderr.write(`warning: ${message}\n`),
    })
  }
  const done = await syncPane(options).catch((error: unknown) => {
    throw commandError(`${error instanceof Error ? error.message : String(error)}`)
  })
  stdout.write(`${describeSync(done)}; ${attach}\n`)
}

function describeSync({ created, respawned, closed, windows }: PaneDone): string {
  return `${count(windows, 'window')}: ${created} new, ${respawned} restarted, ${closed} closed`
}
