/** Provides a plain spawn, a sandbox in a temporary folder and commands in it, for the tests. */

import { mkdirSync, mkdtempSync, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Ahead, CacheOwner, PrivateView, SandboxSettings, Spawn, SpawnPlan, SpawnResult } from './contract.ts'
import { createSandbox } from './create-sandbox.ts'
import { shareEtc } from './filesystem/shared-etc.fixture.ts'
import { removeTree } from './transaction/layer-files.ts'
import { fixedPath } from './trial-key.ts'

/** Serves `test.if` like `needs` of test/support/needs.ts, which only tests may import. */
export function hasBubblewrap(): boolean {
  const tried = Bun.which('bwrap', { PATH: fixedPath }) !== null || Bun.env.CI === 'true'
  if (!tried) console.log('not tried here: needs bwrap')
  return tried
}

export const spawnPlain: Spawn = async ({ argv, cwd, env, signal, onOutput }) => {
  const child = Bun.spawn([...argv], { cwd, env: { ...env }, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
  const kill = () => child.kill('SIGKILL')
  signal.addEventListener('abort', kill, { once: true })
  const read = async (stream: ReadableStream<Uint8Array>, from: 'stdout' | 'stderr') => {
    for await (const chunk of stream) onOutput(chunk, from)
  }
  await Promise.all([read(child.stdout, 'stdout'), read(child.stderr, 'stderr'), child.exited])
  return { ok: true, code: child.exitCode, leftBehind: false }
}

export const limits = { memoryBytes: 512 * 2 ** 20, processes: 64, fileBytes: 64 * 2 ** 20, cpuSeconds: 20 }

export type Place = { readonly root: string; readonly workspace: string; readonly settings: SandboxSettings }

/** The folder is removed at the end of the test through `using`. */
export function place(more: Partial<SandboxSettings> & { readonly name?: string } = {}): Place & Disposable {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'braidclaw-sandbox-')))
  const { name = 'workspace', ...given } = more
  const workspace = join(root, name)
  for (const path of [workspace, join(root, 'home'), join(root, 'state')]) mkdirSync(path, { recursive: true })
  const settings: SandboxSettings = {
    kind: 'bubblewrap',
    workspace,
    home: join(root, 'home'),
    stateHome: join(root, 'state'),
    protectedPaths: [],
    allowedDomains: [],
    limits,
    spawnPlain,
    log() {},
    ...given,
  }
  return { root, workspace, settings, [Symbol.dispose]: () => removeTree(root) }
}

export type Ran = { readonly ended: SpawnResult; readonly code: number | null; readonly stdout: string; readonly stderr: string }
export type Running = Place & {
  run(
    script: string,
    more?: {
      readonly signal?: AbortSignal
      readonly cwd?: string
      readonly argv?: readonly string[]
      readonly readOnly?: boolean
      readonly caches?: CacheOwner
    },
  ): Promise<Ran>
  /** Runs a command in a private view. @throws when it did not run there */
  change(
    script: string,
    more?: { readonly signal?: AbortSignal; readonly cwd?: string } & Pick<SpawnPlan, 'caches' | 'outside'>,
  ): Promise<Ran & { readonly view: PrivateView }>
  describe(): string[]
  warm(plan: Ahead): void
}

/** @throws when no sandbox can be created, because the test then proves nothing */
export async function confined(more: Parameters<typeof place>[0] = {}): Promise<Running & Disposable> {
  const ground = place(more)
  shareEtc(ground.settings.stateHome)
  const created = await createSandbox(ground.settings)
  if (!created.ok) {
    ground[Symbol.dispose]()
    throw new Error(created.missing)
  }
  const { spawn, close, describe, warm } = created.sandbox
  const start = async (plan: Pick<SpawnPlan, 'argv' | 'cwd' | 'signal' | 'view' | 'readOnly' | 'caches' | 'outside'>): Promise<Ran> => {
    const out = { stdout: '', stderr: '' }
    const env = { PATH: fixedPath, HOME: ground.settings.home }
    const onOutput = (chunk: Uint8Array, from: 'stdout' | 'stderr') => {
      out[from] += Buffer.from(chunk).toString()
    }
    const ended = await spawn({ ...plan, env, onOutput })
    return { ended, code: ended.ok ? ended.code : null, ...out }
  }
  const never = new AbortController().signal
  return {
    ...ground,
    describe,
    warm: (plan) => warm?.(plan),
    run: (script, { signal = never, cwd = ground.workspace, argv = ['/bin/sh', '-c', script], readOnly = false, caches } = {}) =>
      start({ argv, cwd, signal, readOnly, caches }),
    async change(script, { signal = never, cwd = ground.workspace, caches, outside } = {}) {
      const ran = await start({ argv: ['/bin/sh', '-c', script], cwd, signal, view: 'private', caches, outside })
      if (!ran.ended.ok || ran.ended.view === undefined) throw new Error(`no private view: ${JSON.stringify(ran)}`)
      return { ...ran, view: ran.ended.view }
    },
    [Symbol.dispose]() {
      close?.()
      ground[Symbol.dispose]()
    },
  }
}
