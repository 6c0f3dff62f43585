/** Bundles the smallest agent and runs it on either runtime with the test's own FIFOs and memory, and shell scripts as its bridges. */

import { afterAll, afterEach, beforeAll, beforeEach } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bundlePlanck } from '../../scripts/planck.ts'
import { createFifos } from '../../src/service/fifo/fifo-folder.ts'
import { openPipe } from '../../src/service/fifo/open-pipe.ts'
import { type Person, person } from './daemon.ts'
import { script as save } from './planck-scripts.ts'

export type Runtime = 'bun' | 'node'
export const runtimes = ['bun', 'node'] as const

const BUN = [process.execPath, '--config=/dev/null', '--no-env-file']
/** The command that runs a script on each runtime. */
export const commands: { readonly [name in Runtime]: readonly string[] } = { bun: BUN, node: ['node'] }

type Env = { readonly [name: string]: string }

export type Running = {
  readonly pid: number
  kill(): Promise<void>
  /** Resolves when this text has appeared on stderr. */
  says(text: string): Promise<void>
  readonly ended: Promise<{ readonly code: number; readonly stderr: string }>
}

export type AgentFolderFixture = Disposable & {
  readonly dir: string
  readonly fifos: string
  /** Returns a file of its memory; undefined when there is none. */
  memory(name: string): string | undefined
  remember(name: string, text: string): void
  planck(runtime: Runtime, env?: Env): Running
  /** Runs a shell script, with our FIFOs in place of /tmp/planckclaw. */
  bridge(text: string, env?: Env): Running
  /** Runs a script from `bridges/`. */
  ours(name: string, env?: Env, stdin?: string): Running & { readonly stdout: Promise<string> }
}

export type Scene = {
  readonly bundle: { readonly file: string; readonly bytes: number }
  /** The folder of the running test. */
  readonly at: AgentFolderFixture
  readonly human: Person
}

/** Prepares a file of tests: it bundles the router once, and gives each test its own folder with a person. It calls `set` for each. */
export function scenes(set: (scene: Scene) => void): void {
  const folder = mkdtempSync(join(tmpdir(), 'braidclaw-planck-'))
  const file = join(folder, 'planck.js')
  const state: { bytes: number; scene?: Scene } = { bytes: 0 }
  beforeAll(async () => {
    state.bytes = await bundlePlanck(file)
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  beforeEach(async () => {
    const at = await den(file)
    state.scene = { bundle: { file, bytes: state.bytes }, at, human: await person(at.fifos) }
    set(state.scene)
  })
  afterEach(async () => {
    await state.scene?.human[Symbol.asyncDispose]()
    state.scene?.at[Symbol.dispose]()
  })
}

/** `held`: another process has the FIFOs open all the time, so that waiting data outlives every process. */
export async function den(file: string): Promise<AgentFolderFixture> {
  const dir = mkdtempSync(join(tmpdir(), 'braidclaw-planck-'))
  const [fifos, memory] = [join(dir, 'fifos'), join(dir, 'memory')]
  mkdirSync(memory)
  const created = await createFifos(fifos)
  if (!created.ok) throw new Error(created.message)
  const held = ['interact_in', 'interact_out'].map((name) => openPipe(join(fifos, name)))
  const running = new Set<number>()
  const base = { PATH: process.env.PATH ?? '', LANG: 'C.UTF-8', PLANCKCLAW_FIFOS: fifos, PLANCKCLAW_DIR: memory }

  function start(command: readonly string[], env: Env = {}, stdin?: string) {
    const child = Bun.spawn([...command], {
      cwd: dir,
      env: { ...base, ...env },
      stdin: stdin === undefined ? 'ignore' : new Blob([stdin]),
      stdout: 'pipe',
      stderr: 'pipe',
      detached: true,
    })
    running.add(child.pid)
    const heard = listen(child.stderr)
    return {
      pid: child.pid,
      says: heard.says,
      stdout: child.stdout.text(),
      ended: Promise.all([child.exited, heard.whole]).then(([code, stderr]) => ({ code, stderr })),
      async kill() {
        killGroup(child.pid)
        await child.exited
      },
    }
  }

  return {
    dir,
    fifos,
    memory: (name) => (existsSync(join(memory, name)) ? readFileSync(join(memory, name), 'utf8') : undefined),
    remember: (name, text) => writeFileSync(join(memory, name), text),
    planck: (runtime, env) => start([...commands[runtime], file], env),
    bridge: (text, env) => start([save(join(dir, `bridge-${running.size}.sh`), text.replaceAll('/tmp/planckclaw', fifos))], env),
    ours: (name, env, stdin) => start([join(import.meta.dir, '../../bridges', name)], env, stdin),
    [Symbol.dispose]() {
      for (const pid of running) killGroup(pid)
      for (const pipe of held) pipe.close()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

function killGroup(leader: number): void {
  try {
    process.kill(-leader, 'SIGKILL')
  } catch {
    // The process has ended by itself.
  }
}

function listen(stream: ReadableStream<Uint8Array>) {
  let heard = ''
  const waiting = new Map<string, () => void>()
  const whole = (async () => {
    const decoder = new TextDecoder()
    for await (const chunk of stream) {
      heard += decoder.decode(chunk, { stream: true })
      for (const [text, resolve] of waiting) if (heard.includes(text)) resolve()
    }
    return heard
  })()
  const says = (text: string): Promise<void> =>
    heard.includes(text) ? Promise.resolve() : new Promise((resolve) => void waiting.set(text, resolve))
  return { whole, says }
}

/** Returns the peak memory of a process in KiB, most of which is the mapped files of its runtime. */
export function peakKb(pid: number): number {
  return Number(/VmHWM:\s*(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
}

/** Returns how much of its memory is mapped from files, in KiB. */
export function fileKb(pid: number): number {
  return Number(/RssFile:\s*(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
}

/** Returns the peak memory of a runtime that only prints this number. */
export function floorKb(runtime: Runtime, env: Env = {}): number {
  const text = `console.log(require('fs').readFileSync('/proc/self/status', 'utf8').match(/VmHWM:\\s*(\\d+)/)[1])`
  const child = Bun.spawnSync([...commands[runtime], '-e', text], { env: { PATH: process.env.PATH ?? '', ...env } })
  return Number(child.stdout.toString())
}
