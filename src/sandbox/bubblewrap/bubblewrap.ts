/** Confines commands with bubblewrap: each command gets its own namespaces and mounts, a system-call filter and limits. */

import { existsSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Created, Ended, Environment, SandboxSettings, Spawn, SpawnPlan } from '../confinement.ts'
import { filterProgram } from '../filter/seccomp.ts'
import { doesNotWork, fixedPath, notInstalled } from '../install.ts'
import { type Command, receiver } from '../late-command.ts'
import { openLibc } from '../libc.ts'
import { limitProcess } from '../limits/resource-limits.ts'
import { watchUse } from '../limits/watch-use.ts'
import { ownFolder } from '../owner/private-folder.ts'
import { markOption, sandboxMark } from '../owner/sandbox-mark.ts'
import { forbiddenOutside } from '../protect/forbidden.ts'
import { createStubs, gitStub, type Stubs } from '../protect/placeholders.ts'
import type { Places } from '../protect/places.ts'
import { prepareSurroundings, type Surroundings } from '../surroundings/surroundings.ts'
import { createTransactions, type Prepared } from '../transaction/transactions.ts'
import { verifyMounts } from '../verify.ts'
import { createGroup } from './cgroup.ts'
import { describeBubblewrap } from './describe-sandbox.ts'
import { chooseCover } from './empty-mount.ts'
import { createMounts } from './mounts.ts'
import { enterGroup, insideUser, isolationArguments } from './namespaces.ts'
import { joinNetwork, type SandboxNetwork } from './proxy-network.ts'
import { descriptors, isSetUpFailure, runConfined, startWaiting, type Waiting } from './run-confined.ts'
import { createGate, type Gate } from './start-gate.ts'
import { directWorkspace, type GuardMounts } from './view.ts'
import { createWarmSandbox } from './warm-sandbox.ts'

type Making = { readonly settings: SandboxSettings; readonly places: Places }
type Way = Extract<SandboxNetwork, { ok: true }>

/** Creates the sandbox and runs one trial command, because an installed program does not prove that the kernel lets it work. */
export async function createBubblewrap({ settings, places }: Making): Promise<Created> {
  const program = Bun.which('bwrap', { PATH: fixedPath })
  if (program === null) return { ok: false, ...notInstalled }
  const folder = ownFolder(places.stateHome, settings.log)
  if (!folder.ok) return folder
  const arch = process.arch === 'arm64' ? 'arm64' : 'x64'
  const strict = settings.without?.includes('seccomp') ? undefined : filterProgram({ arch, inet: true, unix: false })
  const way = joinNetwork({ settings, folder: folder.path, filter: strict })
  if (!way.ok) {
    folder.remove()
    return way
  }
  const confiner = createConfiner({ settings, places, program, folder, way })
  const { close, spawn } = confiner
  const signal = new AbortController().signal
  const command = { argv: ['/bin/sh', '-c', ':'], cwd: places.workspace, env: {}, signal, onOutput() {} }
  const [trial] = await Promise.all([spawn(command), confiner.privateViews()])
  if (trial.ok && trial.code === 0) return { ok: true, sandbox: { name: 'bubblewrap', ...confiner } }
  close()
  return { ok: false, ...doesNotWork(trial.ok ? `a trial ended with ${trial.code ?? trial.signal}` : trial.message) }
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
  const blank = written(folder.path, 'blank', new Uint8Array(), 0)
  const outside = forbiddenOutside(places.workspace, settings.forbiddenPaths?.() ?? [])
  const surroundings = prepareSurroundings({ settings, places, folder: folder.path, blank, cover, user: insideUser() })
  const view = {
    places,
    surroundings,
    secretPaths: [...(settings.secretPaths ?? []), ...outside],
    blank,
    cover,
    scratchBytes: settings.limits.memoryBytes,
    without,
  }
  const mounts = createMounts({ settings, view, gitStub: written(folder.path, 'commondir', Buffer.from(gitStub.content), 0o600) })
  const gate = createGate({ folder: folder.path, cover, sealed: !without.has('mount namespace') })
  const calls = filterProgram({ arch: process.arch === 'arm64' ? 'arm64' : 'x64', inet: true, unix: settings.allowedDomains.length > 0 })
  const filter = without.has('seccomp') ? undefined : written(folder.path, 'filter', calls, 0o600)
  const words = [
    program,
    markOption,
    sandboxMark(folder.path),
    '--args',
    descriptors.options,
    '--',
    ...way.prologue,
    ...receiver(descriptors.command),
  ]
  const last = [...(without.has('mount namespace') ? [] : ['--remount-ro', '/']), '--chdir', places.workspace]
  const transactions = createTransactions({ places, bubblewrap: program, libc, log: settings.log })
  const launch = ({ early, late, view: kind }: Wanted): Sandboxed | Error => {
    const prepared = kind === 'private' ? attempt(() => transactions.prepare()) : undefined
    if (prepared instanceof Error) return prepared
    const drop = () => prepared?.transaction.drop()
    const workspace = prepared?.launch.mounts ?? directWorkspace(view)
    const rest = [...early, ...way.mounts, ...gate.arguments, ...late, ...last]
    const options = [...isolationArguments(without), ...mounts.fixed(), ...workspace, ...rest]
    const argv = [...enterGroup(group?.join ?? []), ...(prepared?.launch.before ?? []), ...words]
    const waiting = startWaiting({ argv, options, env: without.has('environment') ? inherited() : {}, filter, libc })
    if (!(waiting instanceof Error)) return { waiting, prepared, drop }
    drop()
    return waiting
  }
  const warmSandbox = createWarmSandbox(launch)
  const start = async (plan: SpawnPlan): Promise<Ended> => {
    const guards = mounts.guards((path) => stubs.make(path), plan)
    if (!guards.ok) return guards
    const kind = isPrivate(plan) ? 'private' : 'direct'
    const wanted = { ...guards.mounts, view: kind, key: `${kind}\0${guards.mounts.key}` } as const
    const sandboxed = warmSandbox.take(wanted)
    if (sandboxed instanceof Error) return { ok: false, message: `the sandbox could not be started: ${sandboxed.message}` }
    const { waiting, prepared } = sandboxed
    const limit = (pid: number) => (limited ? limitProcess({ libc, pid, limits: settings.limits }) : undefined)
    const inspect = (pid: number) => verifyMounts(pid, without.has('mount namespace') ? [] : guards.mounts.deep)
    prepared?.begin()
    const watch =
      limited && !without.has('pid namespace')
        ? (pid: number, kill: () => void) => watchUse({ pid, limits: settings.limits, kill })
        : undefined
    const ended = await runConfined({ waiting, command: commandOf({ plan, way, surroundings }), plan, prepare: limit, inspect, watch })
    // Start the next sandbox after this turn: nobody waits for it then, and creating namespaces now would delay the end of this command's
    // namespaces.
    setTimeout(() => warmSandbox.prepare(wanted), 0).unref()
    if (prepared === undefined) return ended
    if (ended.ok) return { ...ended, view: prepared.view() }
    prepared.transaction.drop()
    if (isSetUpFailure(ended)) transactions.forget()
    return ended
  }
  return {
    spawn: guarded({ stubs, gate, start }),
    privateViews: transactions.views,
    describe: () => describeBubblewrap({ settings, group: group?.words, views: transactions.words(), without }),
    close() {
      way.stop()
      folder.remove()
      void warmSandbox.close().then(group?.remove)
    },
  }
}

type Wanted = GuardMounts & { readonly view: 'private' | 'direct' }
type Sandboxed = { readonly waiting: Waiting; readonly prepared: Prepared | undefined; drop(): void }

/** A command that cannot write needs no view of its own. */
function isPrivate({ view, readOnly }: SpawnPlan): boolean {
  return view === 'private' && !readOnly
}

function attempt<T>(make: () => T): T | Error {
  try {
    return make()
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error))
  }
}

type Guarded = { readonly stubs: Stubs; readonly gate: Gate; readonly start: Spawn }

/** Keeps the place holders in place and the gate open while any command runs. */
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

type Asked = { readonly plan: SpawnPlan; readonly way: Way; readonly surroundings: Surroundings }

function commandOf({ plan, way, surroundings }: Asked): Command {
  // git would rewrite its index only to remember file times, and every command would seem to change the repository.
  const git: Environment = isPrivate(plan) ? { GIT_OPTIONAL_LOCKS: '0' } : {}
  // A command with the user number of root has no right to give files to other users, and tar would end with an error.
  const tar: Environment = process.geteuid?.() === 0 ? { TAR_OPTIONS: '--no-same-owner' } : {}
  return { argv: plan.argv, cwd: realpathSync(plan.cwd), env: { ...surroundings.environment(plan.env), ...git, ...tar, ...way.env } }
}

/** Passes our whole environment on. Only tests use it, to show the probe what a careless start would leak. */
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
