/** A home of its own for the compiled executable: started, read line by line, killed at any instant. */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { compile } from '../../scripts/compile.ts'
import { minimumConfig } from '../support/cli.ts'

export type Result = { readonly code: number | null; readonly stdout: string; readonly stderr: string }

export type Running = {
  /** Resolves with the number of stdout lines so far, when there are at least `count` or no more will come. */
  lines(count: number): Promise<number>
  kill(): void
  /** `code` is null when it was killed. */
  readonly result: Promise<Result>
}

export type Home = Disposable & {
  readonly dir: string
  /** Our state: what BRAIDCLAW_HOME names. */
  readonly state: string
  readonly workspace: string
  /** `through`: an argv to which the executable and its arguments are appended. */
  start(args: readonly string[], responses?: readonly object[], through?: readonly string[]): Running
  run(args: readonly string[], responses?: readonly object[]): Promise<Result>
}

export type Binary = Disposable & { readonly path: string }

/** What users get, made once a test file; BRAIDCLAW_TEST_BINARY names one that is there already. */
export async function compiledBinary(): Promise<Binary> {
  const given = process.env.BRAIDCLAW_TEST_BINARY
  if (given) return { path: given, [Symbol.dispose]: () => {} }
  const dir = mkdtempSync(join(tmpdir(), 'braidclaw-crash-bin-'))
  const path = join(dir, 'braidclaw')
  const remove = () => rmSync(dir, { recursive: true, force: true })
  const made = await compile({ entry: join(import.meta.dir, '../../src/main.ts'), outfile: path })
  if (made.ok) return { path, [Symbol.dispose]: remove }
  remove()
  throw new Error(made.message)
}

export type HomeOptions = {
  readonly binary: string
  /** Where the state lies, when not in the home's own folder. */
  readonly state?: string
  /** False: there is no configuration yet, as before `init`. */
  readonly configured?: boolean
  /** The workspace of another home that this one works in too. */
  readonly workspace?: string
}

export function createHome({ binary, state, configured = true, workspace: shared }: HomeOptions): Home {
  const dir = mkdtempSync(join(tmpdir(), 'braidclaw-crash-'))
  const kept = state ?? join(dir, '.braidclaw')
  const workspace = shared ?? join(dir, 'braidclaw-workspace')
  mkdirSync(workspace, { recursive: true })
  if (configured) configure(kept)
  const env = {
    HOME: dir,
    BRAIDCLAW_HOME: kept,
    PATH: process.env.PATH ?? '/usr/bin:/bin',
    LANG: 'C.UTF-8',
    BRAIDCLAW_WORKSPACE_DIR: workspace,
  }
  const start: Home['start'] = (args, responses, through = []) => {
    const fixture = responses ? { BRAIDCLAW_MOCK_FIXTURE: fixtureIn(dir, responses) } : {}
    return follow(
      Bun.spawn([...through, binary, ...args], {
        cwd: workspace,
        env: { ...env, ...fixture },
        stdin: 'ignore',
        stdout: 'pipe',
        stderr: 'pipe',
      }),
    )
  }
  return {
    dir,
    state: kept,
    workspace,
    start,
    run: (args, responses) => start(args, responses).result,
    [Symbol.dispose]: () => rmSync(dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 }),
  }
}

/** The seed's minimum with every tool, its files where the home is. */
export function configure(state: string): void {
  mkdirSync(state, { recursive: true, mode: 0o700 })
  const text = minimumConfig.replace(/tools_allow = .*\n/, '').replaceAll('~/.braidclaw/', `${state}/`)
  writeFileSync(join(state, 'config.toml'), text, { mode: 0o600 })
}

function fixtureIn(dir: string, responses: readonly object[]): string {
  const path = join(dir, `fixture-${Bun.randomUUIDv7()}.json`)
  writeFileSync(path, JSON.stringify({ responses }))
  return path
}

function follow(child: Bun.Subprocess<'ignore', 'pipe', 'pipe'>): Running {
  const state = { stdout: '', ended: false }
  const waiting = new Set<() => void>()
  const late = setTimeout(() => child.kill('SIGKILL'), 60_000)
  const stirred = () => {
    for (const look of waiting) look()
  }
  const read = async (): Promise<void> => {
    const decoder = new TextDecoder()
    for await (const piece of child.stdout) {
      state.stdout += decoder.decode(piece, { stream: true })
      stirred()
    }
    state.ended = true
    stirred()
  }
  const count = () => state.stdout.split('\n').length - 1
  const lines = (wanted: number) =>
    new Promise<number>((resolve) => {
      const look = () => {
        if (count() < wanted && !state.ended) return
        waiting.delete(look)
        resolve(count())
      }
      waiting.add(look)
      look()
    })
  const end = async (): Promise<Result> => {
    const [stderr] = await Promise.all([child.stderr.text(), read()])
    await child.exited
    clearTimeout(late)
    return { code: child.signalCode ? null : child.exitCode, stdout: state.stdout, stderr }
  }
  return { lines, kill: () => child.kill('SIGKILL'), result: end() }
}

/** Numbers from 0 up to 1, the same for the same seed. Source: mulberry32. */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
