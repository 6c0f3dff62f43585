/** Confinement by bubblewrap: namespaces and mounts of its own for every command, a system-call filter, and limits. */

import { existsSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createGroup } from './cgroup.ts'
import { describeBubblewrap } from './describe.ts'
import { ownFolder } from './folder.ts'
import { advice, fixedPath, install } from './install.ts'
import { openLibc } from './libc.ts'
import { limitProcess } from './limits.ts'
import { joinNetwork, type WayOut } from './network.ts'
import { isWithin, type Places } from './places.ts'
import type { Created, Ended, Environment, SandboxSettings, Spawn, SpawnPlan } from './port.ts'
import { guardsFor } from './protect.ts'
import { findRepositories } from './repositories.ts'
import { runConfined } from './run.ts'
import { filterProgram } from './seccomp.ts'
import { createStubs, type Stubs } from './stubs.ts'
import { guardArguments, viewArguments } from './view.ts'
import { enterGroup, wallArguments } from './walls.ts'

/** Repositories come and go; looking for them at every command would cost more than the command. */
const SEARCH_MS = 5_000

type Making = { readonly settings: SandboxSettings; readonly places: Places }
type Way = Extract<WayOut, { ok: true }>

/** Tries it once: finding the program does not mean that the kernel lets it work. */
export async function createBubblewrap({ settings, places }: Making): Promise<Created> {
  const program = Bun.which('bwrap', { PATH: fixedPath })
  if (program === null) return { ok: false, missing: `bubblewrap is not installed; ${install}` }
  const folder = ownFolder(places.stateHome)
  if (!folder.ok) return folder
  const way = joinNetwork({ settings, folder: folder.path })
  if (!way.ok) {
    folder.remove()
    return way
  }
  const { close, spawn, describe } = createConfiner({ settings, places, program, folder, way })
  const signal = new AbortController().signal
  const trial = await spawn({ argv: ['/bin/sh', '-c', ':'], cwd: places.workspace, env: {}, signal, onOutput() {} })
  if (trial.ok && trial.code === 0) return { ok: true, sandbox: { name: 'bubblewrap', describe, spawn, close } }
  close()
  const why = trial.ok ? `a trial ended with ${trial.code ?? trial.signal}` : trial.message
  return { ok: false, missing: `bubblewrap is installed but does not work here: ${why}; ${advice()}` }
}

type Confiner = Making & {
  readonly program: string
  readonly folder: { readonly path: string; readonly pool: string; remove(): void }
  readonly way: Way
}

function createConfiner({ settings, places, program, folder, way }: Confiner) {
  const without = new Set(settings.without ?? [])
  const libc = openLibc()
  const limited = !without.has('limits')
  const group = limited ? createGroup({ limits: settings.limits }) : undefined
  const stubs = createStubs({ workspace: places.workspace, pool: folder.pool, libc })
  const mounts = createMounts({ settings, places, stubs, blank: written(folder.path, 'blank', new Uint8Array(), 0) })
  const calls = filterProgram({ arch: process.arch === 'arm64' ? 'arm64' : 'x64', inet: true, unix: settings.allowedDomains.length > 0 })
  const filter = without.has('seccomp') ? undefined : written(folder.path, 'filter', calls, 0o600)
  const before = [...enterGroup(group?.join ?? []), program, ...wallArguments(without)]
  const start = async (plan: SpawnPlan): Promise<Ended> => {
    const made = mounts()
    if (!made.ok) return made
    return await runConfined({
      argv: [...before, ...made.mounts, ...inside({ plan, way, home: places.home, sealed: !without.has('mount namespace') })],
      env: without.has('environment') ? inherited() : {},
      filter,
      plan,
      prepare: (pid) => (limited ? limitProcess({ libc, pid, limits: settings.limits }) : undefined),
    })
  }
  return {
    spawn: guarded(stubs, start),
    describe: () => describeBubblewrap({ settings, group: group?.words, without }),
    close() {
      way.stop()
      group?.remove()
      folder.remove()
    },
  }
}

/** Place holders stand while any command runs. */
function guarded(stubs: Stubs, start: Spawn): Spawn {
  return async (plan) => {
    const wrong =
      plan.argv[0] === undefined ? 'there is no program to run' : existsSync(plan.cwd) ? undefined : `its folder ${plan.cwd} is gone`
    if (wrong !== undefined) return { ok: false, message: `cannot start ${JSON.stringify(plan.argv[0] ?? '')}: ${wrong}` }
    try {
      await stubs.acquire()
    } catch (error) {
      return { ok: false, message: `the workspace cannot be used: ${reason(error)}` }
    }
    try {
      return await start(plan)
    } catch (error) {
      return { ok: false, message: `the sandbox could not be set up: ${reason(error)}` }
    } finally {
      stubs.release()
    }
  }
}

type Mounting = Making & { readonly stubs: Stubs; readonly blank: string }
type Mounts = { readonly ok: true; readonly mounts: readonly string[] } | { readonly ok: false; readonly message: string }

/** The system is looked over at the first command, the protected names at each: they come and go. */
function createMounts({ settings, places, stubs, blank }: Mounting): () => Mounts {
  const without = new Set(settings.without ?? [])
  const known: { view?: readonly string[]; repositories?: readonly string[]; searched?: number } = {}
  const repositories = () => {
    if (known.repositories !== undefined && performance.now() - (known.searched ?? 0) < SEARCH_MS) return known.repositories
    known.repositories = search(settings, places.workspace)
    known.searched = performance.now()
    return known.repositories
  }
  return () => {
    known.view ??= viewArguments({
      places,
      secretPaths: settings.secretPaths ?? [],
      blank,
      scratchBytes: settings.limits.memoryBytes,
      without,
    })
    if (without.has('protected paths')) return { ok: true, mounts: known.view }
    const found = guardsFor({ workspace: places.workspace, extra: settings.protectedPaths, repositories: repositories() })
    if (!found.ok) return found
    const guards = found.guards.filter(({ type, path }) => type !== 'absent' || stubs.make(path))
    return { ok: true, mounts: [...known.view, ...guardArguments(guards)] }
  }
}

function search({ log }: SandboxSettings, workspace: string): readonly string[] {
  const { repositories, complete } = findRepositories(workspace)
  if (!complete) log('warn', 'sandbox: the workspace has too many folders to look for every git repository', { found: repositories.length })
  return repositories
}

type Inside = { readonly plan: SpawnPlan; readonly way: Way; readonly home: string; readonly sealed: boolean }

/** A home that cannot be seen cannot be written to: programs get the private /tmp for their caches. */
function inside({ plan, way, home, sealed }: Inside): string[] {
  const own: Environment = plan.env.HOME === undefined || isWithin(plan.env.HOME, home) ? { HOME: '/tmp' } : {}
  const env = Object.entries({ ...plan.env, ...own, ...way.env })
  return [
    ...way.mounts,
    ...(sealed ? ['--remount-ro', '/'] : []),
    ...['--chdir', realpathSync(plan.cwd)],
    ...env.flatMap(([name, value]) => ['--setenv', name, value]),
    ...['--', ...way.prologue, ...plan.argv],
  ]
}

/** Only to show the probe what a careless start would leak. */
function inherited(): { [name: string]: string } {
  return Object.fromEntries(Object.entries(process.env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])))
}

function written(folder: string, name: string, bytes: Uint8Array, mode: number): string {
  const path = join(folder, name)
  writeFileSync(path, bytes, { mode })
  return path
}

function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
