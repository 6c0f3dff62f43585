/** Talks to tmux: every call is an argv of its own, and every window is found by the mark that we set, never by its name or number. */

import type { PaneWindow, WantedWindow } from './plan-windows.ts'

type TmuxRan = { readonly code: number; readonly stdout: string; readonly stderr: string }

type TmuxOptions = {
  readonly program: string
  /** Of another tmux server than the user's own (`tmux -L`). */
  readonly server?: string
  readonly session: string
  /** The whole environment of tmux and its windows; see `paneEnvironment`. */
  readonly env: { readonly [name: string]: string }
  /** The argv that follows a log in a window. */
  readonly follower: (window: WantedWindow) => readonly string[]
  readonly run: (argv: readonly string[], env: { readonly [name: string]: string }) => Promise<TmuxRan>
}

export type Tmux = {
  /** Empty without a session. @throws Error with what tmux said */
  windows(): Promise<readonly PaneWindow[]>
  create(window: WantedWindow): Promise<void>
  respawn(id: string, window: WantedWindow): Promise<void>
  close(id: string): Promise<void>
}

const separator = '|'
const format = ['#{window_id}', '#{@braidclaw_agent}', '#{@braidclaw_log}', '#{pane_dead}'].join(separator)

export function createTmux({ program, server, session, env, follower, run }: TmuxOptions): Tmux {
  const base = [program, ...(server === undefined ? [] : ['-L', server])]
  const call = (...words: readonly string[]) => run([...base, ...words.map(literal)], env)

  async function must(...words: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await call(...words)
    if (code === 0) return stdout.trim()
    throw new Error(`tmux ${words[0]} failed: ${(stderr || stdout).trim()}`)
  }

  /** The name of a window is for people; it is set once and then stays. */
  async function mark(id: string, { agent, log }: WantedWindow): Promise<void> {
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

/** An argument that ends in ";" would end the command for tmux. */
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

/**
 * tmux keeps the environment it was started with, and any window can print it: so it gets none of our keys and tokens.
 */
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
  const kept = names.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]] as const]))
  return { LANG: 'C.UTF-8', ...Object.fromEntries(kept) }
}

const defaultSession = 'clawdie-controlplane'

export type SessionName = { readonly on: true; readonly name: string; readonly changed: boolean } | { readonly on: false }

/** tmux itself replaces "." and ":", which separate windows and panes; so does this, and also what only a shell could want. */
export function sessionName(given: string | undefined): SessionName {
  if (given !== undefined && given.trim() === '') return { on: false }
  const wanted = (given ?? defaultSession).trim()
  const name = wanted
    .replaceAll(/[^A-Za-z0-9_-]/g, '_')
    .replace(/^-/, '_')
    .slice(0, 64)
  return { on: true, name, changed: name !== wanted }
}
