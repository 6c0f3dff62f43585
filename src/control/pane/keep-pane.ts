/** Keeps the windows of the glass pane in step with the agents, once or until the signal aborts. It only shows: no run depends on it. */

import { join } from 'node:path'
import { errorText } from '../../kit/errors.ts'
import { sha256 } from '../../kit/sha256.ts'

export type PaneOptions = {
  readonly tmux: Tmux
  readonly logDir: string
  /** @returns the ids of the agents that have a window */
  readonly agents: () => Promise<readonly string[]>
}

export type PaneChanges = { readonly created: number; readonly respawned: number; readonly closed: number; readonly windows: number }

export async function syncPane({ tmux, logDir, agents }: PaneOptions): Promise<PaneChanges> {
  const shown = [...new Set(await agents())].filter(isAgentName).map((agent) => agentWindow(agent, logDir))
  const steps = planWindows(shown, await tmux.windows())
  for (const step of steps) await take(tmux, step)
  const number = (what: PaneStep['do']) => steps.filter((step) => step.do === what).length
  return { created: number('create'), respawned: number('respawn'), closed: number('close'), windows: shown.length }
}

type PaneWatch = PaneOptions & {
  readonly signal: AbortSignal
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>
  readonly changed: (done: PaneChanges) => void
  /** Receives the message of a failed try; another try follows. */
  readonly failed: (message: string) => void
}

const everyMs = 2_000

export async function watchPane({ signal, sleep, changed, failed, ...options }: PaneWatch): Promise<void> {
  let lastFailure = ''
  while (!signal.aborted) {
    try {
      const done = await syncPane(options)
      if (done.created + done.respawned + done.closed > 0) changed(done)
      lastFailure = ''
    } catch (error) {
      const message = errorText(error)
      if (message !== lastFailure) failed(message)
      lastFailure = message
    }
    await sleep(everyMs, signal)
  }
}

async function take(tmux: Tmux, step: PaneStep): Promise<void> {
  if (step.do === 'create') await tmux.create(step.window)
  else if (step.do === 'respawn') await tmux.respawn(step.id, step.window)
  else await tmux.close(step.id)
}

/** Tells whether a text can be the name of an agent; other log files get no window. */
export function isAgentName(text: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(text)
}

function agentWindow(agent: string, logDir: string): AgentWindow {
  const path = join(logDir, `${agent}.log`)
  return { agent, path, log: sha256(path).slice(0, 16) }
}

/** Describes an existing window; `agent` is empty for a window that is not ours. */
export type PaneWindow = { readonly id: string; readonly agent: string; readonly log: string; readonly dead: boolean }

/** Describes the window that an agent should have; `log` identifies the file that it follows. */
type AgentWindow = { readonly agent: string; readonly log: string; readonly path: string }

type PaneStep =
  | { readonly do: 'create'; readonly window: AgentWindow }
  /** Keeps the window with its number, and lets it follow this log. */
  | { readonly do: 'respawn'; readonly id: string; readonly window: AgentWindow }
  | { readonly do: 'close'; readonly id: string }

/**
 * Plans what has to change so that each agent has one window. Windows that are not ours are never touched; a window of ours whose follower ended,
 * or follows another file, is used again.
 */
export function planWindows(shown: readonly AgentWindow[], present: readonly PaneWindow[]): readonly PaneStep[] {
  const ours = present.filter(({ agent }) => agent !== '')
  const first = new Map(ours.toReversed().map((window) => [window.agent, window]))
  const names = new Set(shown.map(({ agent }) => agent))
  const surplus = ours.filter((window) => !names.has(window.agent) || first.get(window.agent) !== window)
  return [
    ...shown.flatMap((window) => stepFor(window, first.get(window.agent))),
    ...surplus.map(({ id }): PaneStep => ({ do: 'close', id })),
  ]
}

function stepFor(window: AgentWindow, found: PaneWindow | undefined): PaneStep[] {
  if (!found) return [{ do: 'create', window }]
  return found.dead || found.log !== window.log ? [{ do: 'respawn', id: found.id, window }] : []
}

type TmuxResult = { readonly code: number; readonly stdout: string; readonly stderr: string }

type TmuxOptions = {
  readonly program: string
  /** Names another tmux server than the user's own (`tmux -L`). */
  readonly server?: string
  readonly session: string
  /** The whole environment of tmux and its windows; see `paneEnvironment`. */
  readonly env: { readonly [name: string]: string }
  /** The argv that follows a log in a window. */
  readonly follower: (window: AgentWindow) => readonly string[]
  readonly run: (argv: readonly string[], env: { readonly [name: string]: string }) => Promise<TmuxResult>
}

type Tmux = {
  /** Returns nothing without a session. @throws Error with the message of tmux */
  windows(): Promise<readonly PaneWindow[]>
  create(window: AgentWindow): Promise<void>
  respawn(id: string, window: AgentWindow): Promise<void>
  close(id: string): Promise<void>
}

const separator = '|'
const format = ['#{window_id}', '#{@braidclaw_agent}', '#{@braidclaw_log}', '#{pane_dead}'].join(separator)

/** Talks to tmux: every call is an argv of its own, and every window is found by the mark that we set, never by its name or number. */
export function createTmux({ program, server, session, env, follower, run }: TmuxOptions): Tmux {
  const base = [program, ...(server === undefined ? [] : ['-L', server])]
  const call = (...words: readonly string[]) => run([...base, ...words.map(literal)], env)

  async function must(...words: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await call(...words)
    if (code === 0) return stdout.trim()
    throw new Error(`tmux ${words[0]} failed: ${(stderr || stdout).trim()}`)
  }

  /** Marks a window as ours. Its name is for people; it is set once and then stays. */
  async function mark(id: string, { agent, log }: AgentWindow): Promise<void> {
    const options = [
      ['@braidclaw_agent', agent],
      ['@braidclaw_log', log],
      ['automatic-rename', 'off'],
      ['allow-rename', 'off'],
      ['remain-on-exit', 'on'],
    ] as const
    for (const [name, value] of options) await must('set-option', '-w', '-t', id, name, value)
  }

  return {
    async windows() {
      const { code, stdout, stderr } = await call('list-windows', '-t', `=${session}:`, '-F', format)
      if (code === 0) return stdout.split('\n').filter(Boolean).map(windowIn)
      if (isAbsent(stderr)) return []
      throw new Error(`tmux list-windows failed: ${stderr.trim()}`)
    },
    async create(window) {
      const has = (await call('has-session', '-t', `=${session}`)).code === 0
      // "=name:" lets tmux take the next free number; a bare name could mean a window, whose number is in use.
      const place = has ? ['new-window', '-d', '-t', `=${session}:`] : ['new-session', '-d', '-s', session, '-x', '200', '-y', '50']
      const id = await must(...place, '-n', window.agent, '-P', '-F', '#{window_id}', ...follower(window))
      await mark(id, window)
    },
    async respawn(id, window) {
      await must('respawn-window', '-k', '-t', id, ...follower(window))
      await mark(id, window)
    },
    close: async (id) => void (await must('kill-window', '-t', id)),
  }
}

/** Escapes a ";" at the end of an argument, which would end the command for tmux. */
function literal(word: string): string {
  return word.endsWith(';') ? `${word.slice(0, -1)}\\;` : word
}

function windowIn(line: string): PaneWindow {
  const [id = '', agent = '', log = '', dead = ''] = line.split(separator)
  return { id, agent, log, dead: dead === '1' }
}

function isAbsent(stderr: string): boolean {
  return /no server running|can't find session|error connecting to .*No such file/i.test(stderr)
}

/** Returns an environment without our keys and tokens, because tmux keeps the one it was started with, and any window can print it. */
export function paneEnvironment(env: { readonly [name: string]: string | undefined }): { readonly [name: string]: string } {
  const names = [
    'PATH',
    'HOME',
    'USER',
    'LOGNAME',
    'SHELL',
    'TERM',
    'LANG',
    'LC_ALL',
    'TZ',
    'TMUX_TMPDIR',
    'TMPDIR',
    'XDG_RUNTIME_DIR',
    'BRAIDCLAW_HOME',
  ]
  const entries = names.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]] as const]))
  return { LANG: 'C.UTF-8', ...Object.fromEntries(entries) }
}

const defaultSession = 'clawdie-controlplane'

export type SessionName = { readonly on: true; readonly name: string; readonly changed: boolean } | { readonly on: false }

/** Replaces "." and ":", as tmux itself does because they separate windows and panes, and every character with a meaning for a shell. */
export function sessionName(text: string | undefined): SessionName {
  if (text !== undefined && text.trim() === '') return { on: false }
  const requested = (text ?? defaultSession).trim()
  const name = requested
    .replaceAll(/[^A-Za-z0-9_-]/g, '_')
    .replace(/^-/, '_')
    .slice(0, 64)
  return { on: true, name, changed: name !== requested }
}
