/**
 * Runs the real executable in its own home: it spawns it, feeds it, limits its time and reads its output. BRAIDCLAW_TEST_BINARY selects the
 * compiled one.
 */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { minimum } from '../../src/config/load.fixture.ts'
import { transcript } from './transcript.ts'

const root = join(import.meta.dir, '../..')

/** The executable that runs as `braidclaw` here. */
export const executable = process.env.BRAIDCLAW_TEST_BINARY || join(root, 'bin/braidclaw')

const hasBubblewrap = Bun.which('bwrap', { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' }) !== null

export type Result = { readonly code: number | null; readonly stdout: string; readonly stderr: string }
/** `stdout` is the transcript of the screen, and `raw` all that was written to it. */
export type TerminalResult = Result & { readonly raw: string }

export type Invocation = {
  readonly env?: { readonly [name: string]: string }
  /** Text for stdin; absent: stdin is closed. */
  readonly stdin?: string | Uint8Array
  readonly cwd?: string
  /** Kills the process and fails the test after this many ms. */
  readonly timeoutMs?: number
  /** A launcher for the executable: an argv to which the executable and its arguments are appended. */
  readonly through?: readonly string[]
}

export type Started = {
  readonly pid: number
  /** Resolves when this text has appeared on stderr; returns it, or what the first group of a pattern matched. */
  says(text: string | RegExp): Promise<string>
  /** As `says`, on stdout. */
  prints(text: string | RegExp): Promise<string>
  readonly result: Promise<Result>
}

export type Nest = Disposable & {
  readonly dir: string
  readonly home: string
  readonly workspace: string
  readonly env: { readonly [name: string]: string }
  run(args: readonly string[], invocation?: Invocation): Promise<Result>
  /** As `run`, but returns while the process runs. */
  start(args: readonly string[], invocation?: Invocation): Started
  /** Runs on a pseudo-terminal; it types each answer when its key appears on the screen. */
  terminal(
    args: readonly string[],
    answers: readonly (readonly [appears: string, type: string])[],
    invocation?: Invocation,
  ): Promise<TerminalResult>
  /** Writes ~/.braidclaw/config.toml: the seed's minimum, with these lines added or replaced. */
  config(toml: string): void
  /** Writes a fixture file; returns its path. */
  fixture(responses: readonly object[]): string
  /** Writes a file in the workspace. */
  file(path: string, text: string): string
}

export function nest(): Nest {
  const dir = mkdtempSync(join(tmpdir(), 'braidclaw-test-'))
  const home = join(dir, 'home')
  const workspace = join(home, 'braidclaw-workspace')
  mkdirSync(workspace, { recursive: true })
  const env = { HOME: home, PATH: process.env.PATH ?? '/usr/bin:/bin', LANG: 'C.UTF-8', TERM: 'xterm-256color' }

  function start(args: readonly string[], invocation: Invocation = {}): Started {
    const { stdin, timeoutMs = 30_000, cwd = workspace, through = [] } = invocation
    const child = Bun.spawn([...through, executable, ...args], {
      cwd,
      env: { ...env, ...invocation.env },
      stdin: stdin === undefined ? 'ignore' : new Blob([typeof stdin === 'string' ? stdin : new Uint8Array(stdin)]),
      stdout: 'pipe',
      stderr: 'pipe',
    })
    const late = setTimeout(() => child.kill('SIGKILL'), timeoutMs)
    const [printed, heard] = [listen(child.stdout, 'stdout'), listen(child.stderr, 'stderr')]
    const result = async (): Promise<Result> => {
      const [stdout, stderr] = await Promise.all([printed.whole, heard.whole])
      await child.exited
      clearTimeout(late)
      return { code: child.signalCode ? null : child.exitCode, stdout, stderr: unwarned(stderr) }
    }
    return { pid: child.pid, says: heard.says, prints: printed.says, result: result() }
  }

  const run: Nest['run'] = (args, invocation) => start(args, invocation).result

  const terminal: Nest['terminal'] = async (args, answers, invocation = {}) => {
    const screen = { text: '', from: 0 }
    const waiting = [...answers]
    const child = Bun.spawn([...(invocation.through ?? []), executable, ...args], {
      cwd: invocation.cwd ?? workspace,
      env: { ...env, ...invocation.env },
      terminal: {
        cols: 120,
        rows: 40,
        data(pty, bytes) {
          screen.text += new TextDecoder().decode(bytes)
          const { text, prompt } = transcript(screen.text)
          const seen = text + prompt
          for (let [next] = waiting; next; [next] = waiting) {
            const at = seen.indexOf(next[0], screen.from)
            if (at < 0) return
            waiting.shift()
            screen.from = Math.min(text.length, at + next[0].length)
            pty.write(next[1])
          }
        },
      },
    })
    const late = setTimeout(() => child.kill('SIGKILL'), invocation.timeoutMs ?? 30_000)
    await child.exited
    await Bun.sleep(20)
    clearTimeout(late)
    child.terminal?.close()
    const [stdout, raw] = [transcript(screen.text).text, screen.text].map((text) => unwarned(text.replaceAll('\r\n', '\n')))
    return { code: child.signalCode ? null : child.exitCode, stdout: stdout ?? '', raw: raw ?? '', stderr: '' }
  }

  return {
    dir,
    home,
    workspace,
    env,
    run,
    start,
    terminal,
    config(toml) {
      mkdirSync(join(home, '.braidclaw'), { recursive: true })
      writeFileSync(join(home, '.braidclaw/config.toml'), toml)
    },
    fixture(responses) {
      const path = join(dir, `fixture-${Bun.randomUUIDv7()}.json`)
      writeFileSync(path, JSON.stringify({ responses }))
      return path
    },
    file(path, text) {
      const whole = join(workspace, path)
      mkdirSync(join(whole, '..'), { recursive: true })
      writeFileSync(whole, text)
      return whole
    },
    [Symbol.dispose]: () => rmSync(dir, { recursive: true, force: true }),
  }
}

/** Without bubblewrap every turn with tools warns about it, which is irrelevant to tests of other features. */
function unwarned(text: string): string {
  return hasBubblewrap ? text : text.replace(/^warn: shell tool off .*\n/gm, '')
}

function listen(stream: ReadableStream<Uint8Array>, name: string): { says: Started['says']; readonly whole: Promise<string> } {
  const state = { text: '', ended: false }
  const waiting = new Set<() => void>()
  const read = async (): Promise<string> => {
    const decoder = new TextDecoder()
    for await (const piece of stream) {
      state.text += decoder.decode(piece, { stream: true })
      for (const look of waiting) look()
    }
    state.ended = true
    for (const look of waiting) look()
    return state.text
  }
  const find = (text: string | RegExp) =>
    typeof text === 'string' ? (state.text.includes(text) ? text : undefined) : text.exec(state.text)?.[1]
  const says = (text: string | RegExp) =>
    new Promise<string>((resolve, reject) => {
      const look = () => {
        const found = find(text)
        if (found !== undefined) resolve(found)
        else if (state.ended) reject(new Error(`${name} never said "${text}", it said: ${state.text}`))
        else return
        waiting.delete(look)
      }
      waiting.add(look)
      look()
    })
  return { says, whole: read() }
}

/** The smallest complete configuration, from its second line on: a test writes line 1 itself. */
export const minimumConfig = `\n${minimum}`
