/** Confinement by bubblewrap: namespaces and mounts of its own for every command, a system-call filter, and limits. */

import { existsSync, realpathSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createGroup } from './cgroup.ts'
import { type Command, receiver } from './command.ts'
import { describeBubblewrap } from './describe.ts'
import { type Cover, chooseCover } from './empty.ts'
import { ownFolder } from './folder.ts'
import { createGate, type Gate } from './gate.ts'
import { advice, fixedPath, install } from './install.ts'
import { openLibc } from './libc.ts'
import { limitProcess } from './limits.ts'
import { joinNetwork, type WayOut } from './network.ts'
import { isWithin, type Places } from './places.ts'
import type { Created, Ended, Environment, Layer, SandboxSettings, Spawn, SpawnPlan } from './port.ts'
import { guardsFor } from './protect.ts'
import { findRepositories } from './repositories.ts'
import { descriptors, runConfined, startWaiting } from './run.ts'
import { filterProgram } from './seccomp.ts'
import { createSpare } from './spare.ts'
import { createStubs, gitStub, type Stubs } from './stubs.ts'
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
  const cover = chooseCover(without)
  const mounts = createMounts({
    settings,
    places,
    cover,
    blank: written(folder.path, 'blank', new Uint8Array(), 0),
    gitStub: written(folder.path, 'commondir', Buffer.from(gitStub.content), 0o600),
  })
  const gate = createGate({ folder: folder.path, cover, sealed: !without.has('mount namespace') })
  const calls = filterProgram({ arch: process.arch === 'arm64' ? 'arm64' : 'x64', inet: true, unix: settings.allowedDomains.length > 0 })
  const filter = without.has('seccomp') ? undefined : written(folder.path, 'filter', calls, 0o600)
  const before = [...enterGroup(group?.join ?? []), program, ...wallArguments(without)]
  const spare = createSpare({
    identity: () => String(statSync(places.workspace, { throwIfNoEntry: false })?.ino),
    start: (guards) => {
      const argv = [...before, ...mounts.fixed(), ...way.mounts, ...gate.arguments, ...guards, ...inside({ way, places, without })]
      return startWaiting({ argv, env: without.has('environment') ? inherited() : {}, filter })
    },
  })
  const start = async (plan: SpawnPlan): Promise<Ended> => {
    const guards = mounts.guards((path) => stubs.make(path))
    if (!guards.ok) return guards
    const waiting = spare.take(guards.mounts)
    if (waiting instanceof Error) return { ok: false, message: `the sandbox could not be started: ${waiting.message}` }
    const prepare = (pid: number) => (limited ? limitProcess({ libc, pid, limits: settings.limits }) : undefined)
    const ended = await runConfined({ waiting, command: commandOf({ plan, way, home: places.home }), plan, prepare })
    // Afterwards: nobody waits for it then, and making namespaces would hold up this command's leaving its own.
    setTimeout(() => spare.prepare(guards.mounts), 0).unref()
    return ended
  }
  return {
    spawn: guarded({ stubs, gate, start }),
    describe: () => describeBubblewrap({ settings, group: group?.words, without }),
    close() {
      way.stop()
      folder.remove()
      void spare.close().then(group?.remove)
    },
  }
}

type Guarded = { readonly stubs: Stubs; readonly gate: Gate; readonly start: Spawn }

/** Place holders stand and the gate is open while any command runs. */
function guarded({ stubs, gate, start }: Guarded): Spawn {
  return async (plan) => {
    if (plan.signal.aborted) return { ok: false, message: 'cancelled before it started' }
    const wrong =
      plan.argv[0] === undefined ? 'there is no program to run' : existsSync(plan.cwd) ? undefined : `its folder ${plan.cwd} is gone`
    if (wrong !== undefined) return { ok: false, message: `cannot start ${JSON.stringify(plan.argv[0] ?? '')}: ${wrong}` }
    try {
      await stubs.acquire()
    } catch (error) {
      return { ok: false, message: `the workspace cannot be used: ${reason(error)}` }
    }
    gate.open()
    try {
      return await start(plan)
    } catch (error) {
      return { ok: false, message: `the sandbox could not be set up: ${reason(error)}` }
    } finally {
      gate.shut()
      stubs.release()
    }
  }
}

type Mounting = Making & { readonly blank: string; readonly gitStub: string; readonly cover: Cover }
type Guarding = { readonly ok: true; readonly mounts: readonly string[] } | { readonly ok: false; readonly message: string }

/** The system is looked over once, the protected names at each command: they come and go. */
function createMounts({ settings, places, blank, gitStub, cover }: Mounting) {
  const without = new Set(settings.without ?? [])
  const known: { view?: readonly string[]; repositories?: readonly string[]; searched?: number } = {}
  const repositories = () => {
    if (known.repositories !== undefined && performance.now() - (known.searched ?? 0) < SEARCH_MS) return known.repositories
    known.repositories = search(settings, places.workspace)
    known.searched = performance.now()
    return known.repositories
  }
  return {
    fixed(): readonly string[] {
      known.view ??= viewArguments({
        places,
        secretPaths: settings.secretPaths ?? [],
        blank,
        cover,
        scratchBytes: settings.limits.memoryBytes,
        without,
      })
      return known.view
    },
    /** `make` puts a place holder and says whether it is needed. */
    guards(make: (path: string) => boolean): Guarding {
      if (without.has('protected paths')) return { ok: true, mounts: [] }
      const found = guardsFor({ workspace: places.workspace, extra: settings.protectedPaths, repositories: repositories() })
      return found.ok
        ? {
            ok: true,
            mounts: guardArguments({ guards: found.guards.filter(({ type, path }) => type !== 'absent' || make(path)), gitStub, cover }),
          }
        : found
    },
  }
}

function search({ log }: SandboxSettings, workspace: string): readonly string[] {
  const { repositories, complete } = findRepositories(workspace)
  if (!complete) log('warn', 'sandbox: the workspace has too many folders to look for every git repository', { found: repositories.length })
  return repositories
}

type Inside = { readonly way: Way; readonly places: Places; readonly without: ReadonlySet<Layer> }

function inside({ way, places, without }: Inside): string[] {
  return [
    ...(without.has('mount namespace') ? [] : ['--remount-ro', '/']),
    ...['--chdir', places.workspace, '--', ...way.prologue, ...receiver(descriptors.command)],
  ]
}

type Asked = { readonly plan: SpawnPlan; readonly way: Way; readonly home: string }

/** A home that cannot be seen cannot be written to: programs get the private /tmp for their caches. */
function commandOf({ plan, way, home }: Asked): Command {
  const own: Environment = plan.env.HOME === undefined || isWithin(plan.env.HOME, home) ? { HOME: '/tmp' } : {}
  return { argv: plan.argv, cwd: realpathSync(plan.cwd), env: { ...plan.env, ...own, ...way.env } }
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
