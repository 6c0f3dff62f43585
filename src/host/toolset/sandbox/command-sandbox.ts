/**
 * Manages the sandboxes of a process: conversations with the same workspace and settings share one, created when the first command needs it.
 * Determines by a trial whether commands can be confined here: doctor, the list of tools and the model's tool list use the same result.
 */

import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { dirname, join } from 'node:path'
import type { Config } from '../../../config/config.ts'
import { attempt, errorText } from '../../../kit/errors.ts'
import { databaseFiles } from '../../../memory/database-file.ts'
import { filesOf } from '../../../receipts/segments.ts'
import type { Ahead, Limits, Loopback, Sandbox, SandboxKind, SandboxName } from '../../../sandbox/contract.ts'
import type { Trial } from '../../../sandbox/trial.ts'
import { notWorking, trialKey } from '../../../sandbox/trial-key.ts'
import type { CommandMode } from '../../../security/autonomy.ts'
import type { Policy } from '../../../security/policy.ts'
import type { Spawn } from '../../../tools/process.ts'
import type { Setup } from '../../api.ts'
import { shellTimesOf } from '../../setup/run-limits.ts'

type Confinement = {
  /** Runs a command. Without a working sandbox it runs nothing, and the message says what to install. */
  readonly spawn: Spawn
  /** Returns how commands run here. Creates the sandbox, so that it is ready for the command that follows. */
  mode(): Promise<CommandMode>
  /** Returns the sandbox that confines commands here; undefined when none works. */
  kind(): Promise<SandboxName | undefined>
  /** Starts a sandbox for the next command, so that the command does not wait for it; does nothing before `mode` was asked. */
  warm(plan: Ahead): void
  /** Opens a network that the commands of a conversation without hosts share. @returns why there can be none */
  openLoopback(): Promise<Loopback | string>
  close(): void
}

const unconfined: CommandMode = { confined: false, transaction: false }

/**
 * Returns the processor time of one process: all that it can use on all processors within its time limit, so that this limit is never
 * reached first.
 */
export function cpuSecondsOf(limits: Config['limits'], processors = availableParallelism()): number {
  return Math.ceil(Math.max(600, limits.toolTimeoutS, shellTimesOf(limits).longestS) * processors)
}

/** Advice for users who have not tried the other kind. */
const instead: { readonly [kind: string]: string } = { auto: '; or --sandbox landlock, which protects less (docs/sandbox.md)' }

export type SandboxPool = {
  /** Returns the sandbox for one conversation's commands: cheap, because nothing starts before the first command. */
  confinement(kind: SandboxKind, around: SandboxContext): Confinement
  /** Closes all sandboxes. */
  close(): void
}

type SandboxContext = {
  readonly setup: Setup
  readonly policy: Policy
  /** Replaces the limits of a command. */
  readonly limits?: Partial<Limits>
}

type Shared = Confinement & { users: number; idle?: ReturnType<typeof setTimeout> }

/** How long an unused sandbox is kept for the next conversation, in milliseconds. */
const usualIdleMs = 60_000

export function createSandboxPool(idleMs = usualIdleMs): SandboxPool {
  const shared = new Map<string, Shared>()

  function join(key: string, kind: SandboxKind, around: SandboxContext): Shared {
    const found = shared.get(key) ?? { ...createShared(kind, around), users: 0 }
    shared.set(key, found)
    clearTimeout(found.idle)
    found.users += 1
    return found
  }

  function leave(key: string, left: Shared): void {
    left.users -= 1
    if (left.users > 0) return
    left.idle = setTimeout(() => {
      if (shared.get(key) === left) shared.delete(key)
      left.close()
    }, idleMs)
    left.idle.unref()
  }

  return {
    confinement(kind, around) {
      const key = keyOf(kind, around)
      const mine: { shared?: Shared; closed: boolean } = { closed: false }
      const joined = () => (mine.shared ??= join(key, kind, around))
      return {
        async spawn(plan) {
          if (mine.closed) return { ok: false, message: 'the conversation is closed, so no command runs' }
          return joined().spawn(plan)
        },
        mode: async () => (mine.closed ? unconfined : joined().mode()),
        kind: async () => (mine.closed ? undefined : joined().kind()),
        warm: (plan) => mine.shared?.warm(plan),
        openLoopback: async () => (mine.closed ? 'the conversation is closed' : joined().openLoopback()),
        close() {
          if (mine.shared && !mine.closed) leave(key, mine.shared)
          mine.closed = true
        },
      }
    },
    close() {
      for (const each of shared.values()) {
        clearTimeout(each.idle)
        each.close()
      }
      shared.clear()
    },
  }
}

/** Creates a sandbox for a caller that is not a conversation of a host. */
export function createConfinement(kind: SandboxKind, around: SandboxContext): Confinement {
  const pool = createSandboxPool()
  return { ...pool.confinement(kind, around), close: pool.close }
}

/** The key contains everything that a command can observe of its environment. */
function keyOf(kind: SandboxKind, { setup, policy }: SandboxContext): string {
  const { workspace, home, forbiddenPaths, forbiddenReads, forbiddenCommands, allowedDomains, allowedPorts } = policy
  return JSON.stringify([
    kind,
    workspace,
    home,
    setup.paths.home,
    forbiddenPaths,
    forbiddenReads,
    forbiddenCommands,
    setup.context.env.PATH,
    outsideHome(setup),
    allowedDomains,
    allowedPorts,
    cpuSecondsOf(setup.config.limits),
  ])
}

/** Commands without network share one sandbox; each other set of hosts has its own. */
function createShared(kind: SandboxKind, around: SandboxContext): Omit<Shared, 'users' | 'idle'> {
  const byHosts = new Map<string, Omit<Shared, 'users' | 'idle'>>()
  const open = (hosts: readonly string[]) => {
    const key = hosts.join(' ')
    const found = byHosts.get(key) ?? createLazy(kind, around, hosts)
    byHosts.set(key, found)
    return found
  }
  return {
    spawn: (plan) => open([...(plan.network ?? [])].sort()).spawn(plan),
    mode: () => open([]).mode(),
    kind: () => open([]).kind(),
    warm: (plan) => byHosts.get('')?.warm(plan),
    openLoopback: () => open([]).openLoopback(),
    close() {
      for (const each of byHosts.values()) each.close()
    },
  }
}

/** The first command creates the sandbox; after a failure the next command tries again. */
function createLazy(kind: SandboxKind, around: SandboxContext, hosts: readonly string[]): Omit<Shared, 'users' | 'idle'> {
  const state: { made?: ReturnType<typeof make> | undefined; sandbox?: Sandbox; closed: boolean } = { closed: false }

  async function make() {
    const { setup, policy, limits } = around
    const [{ createSandbox }, { settingsFor }] = await Promise.all([
      import('../../../sandbox/create-sandbox.ts'),
      import('./sandbox-settings.ts'),
    ])
    const own = {
      secretPaths: outsideHome(setup),
      tried: isSandboxTried(setup, kind),
      cpuSeconds: cpuSecondsOf(setup.config.limits),
      ...limits,
    }
    const created = await createSandbox(await settingsFor({ kind, setup, policy, hosts, own }))
    if (!created.ok) {
      state.made = undefined
      forgetSandbox(around.setup)
    } else if (state.closed) created.sandbox.close?.()
    else state.sandbox = created.sandbox
    return created
  }

  const current = () => (state.made ??= make())
  const noSandbox = (missing: string) => ({
    ok: false as const,
    message: `no sandbox, so no command runs: ${missing}${instead[kind] ?? ''}; or, with all your rights and at your own risk: --sandbox none`,
  })

  return {
    async spawn(plan) {
      const made = await current()
      if (!made.ok) return noSandbox(made.missing)
      const { name, spawn } = made.sandbox
      const ended = await spawn(plan)
      if (ended.ok) return { ...ended, sandbox: name }
      if (!ended.message.startsWith(notWorking)) return ended
      forgetSandbox(around.setup)
      return noSandbox(ended.message)
    },
    async mode() {
      const made = await current()
      if (!made.ok) return { ...unconfined, why: made.missing }
      if (made.sandbox.name === 'none') return { ...unconfined, why: 'no sandbox was asked for (--sandbox none)' }
      const { missingForNetwork } = await import('../../../sandbox/bubblewrap/command-network.ts')
      const network = made.sandbox.name === 'bubblewrap' && missingForNetwork().length === 0
      const views = await made.sandbox.privateViews()
      return { confined: true, transaction: views.ok, network, ...(views.ok ? {} : { why: views.why }) }
    },
    async kind() {
      const made = await current()
      return made.ok ? made.sandbox.name : undefined
    },
    warm: (plan) => state.sandbox?.warm?.(plan),
    async openLoopback() {
      const made = await current()
      return (made.ok ? await made.sandbox.openLoopback?.() : undefined) ?? 'this sandbox separates the networks of commands'
    },
    close() {
      state.closed = true
      state.sandbox?.close?.()
    },
  }
}

/** Our own files that the operator moved out of the home; a file that does not exist yet is not covered. */
function outsideHome({ config, paths }: Pick<Setup, 'config' | 'paths'>): string[] {
  const { memory, receipts } = config
  return [...databaseFiles(memory.path), ...filesOf(receipts.path)].filter((path) => !path.startsWith(`${paths.home}/`))
}

/** Runs the trial now, ignores earlier results, and stores nothing. */
export async function trySandboxNow(setup: Setup, kind: SandboxKind = 'auto'): Promise<Trial> {
  const { config, paths, context } = setup
  const { trySandbox } = await import('../../../sandbox/trial.ts')
  const trial = await trySandbox(kind, { workspace: config.workspaceDir, home: context.env.HOME || '/', stateHome: paths.home })
  if (!trial.ok) forgetSandbox(setup)
  return trial
}

/** Forgets the stored success after a failure, so that the next turn tries again. */
function forgetSandbox(setup: Setup): void {
  rmSync(fileOf(setup), { force: true })
}

/**
 * Returns the stored or a new result. A success is stored until the machine reboots, or the workspace, bubblewrap or a relevant setting
 * changes. A failure is never stored, because somebody may fix the cause.
 */
export async function sandboxState(setup: Setup, kind: SandboxKind = 'auto'): Promise<Trial> {
  // No sandbox needs no trial, and loading the trial module takes milliseconds.
  if (kind === 'none') return { ok: true }
  const key = keyFor(setup, kind)
  if (key === undefined) return trySandboxNow(setup, kind)
  if (storedKey(setup) === key) return { ok: true }
  const trial = await trySandboxNow(setup, kind)
  if (trial.ok) keep(setup, key)
  return trial
}

/** @returns whether a stored success still holds; it tries nothing */
function isSandboxTried(setup: Setup, kind: SandboxKind): boolean {
  const key = keyFor(setup, kind)
  return key !== undefined && storedKey(setup) === key
}

/** @returns undefined when a trial costs nothing or bubblewrap is not there */
function keyFor({ config }: Setup, kind: SandboxKind): string | undefined {
  const key = kind === 'auto' || kind === 'bubblewrap' ? trialKey() : undefined
  return key && `${config.workspaceDir}\n${key}`
}

function fileOf({ paths }: Setup): string {
  return join(paths.home, 'run', 'sandbox-works')
}

function storedKey(setup: Setup): string | undefined {
  return attempt(() => readFileSync(fileOf(setup), 'utf8'))
}

/** When the result cannot be stored, every turn runs the trial. */
function keep(setup: Setup, key: string): void {
  const file = fileOf(setup)
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    writeFileSync(file, key, { mode: 0o600 })
  } catch (error) {
    setup.log('debug', 'sandbox trial not kept', { why: errorText(error) })
  }
}
