/** Confines commands with bubblewrap: each command gets its own namespaces and mounts, a system-call filter and limits. */

import { existsSync, realpathSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { errorText } from '../../kit/errors.ts'
import { forbiddenReads } from '../../security/targets/path.ts'
import type { Ahead, ChildEnvironment, Created, Layer, Sandbox, SandboxSettings, Spawn, SpawnPlan, SpawnResult } from '../contract.ts'
import { type CommandFilesystem, prepareFilesystem } from '../filesystem/command-filesystem.ts'
import { doesNotWork, notInstalled } from '../install.ts'
import { openLibc } from '../libc.ts'
import type { SandboxCommand } from '../pipes/command-pipes.ts'
import { markOption, ownFolder, sandboxMark } from '../private-folder.ts'
import { limitProcess, watchUse } from '../process-limits.ts'
import { findUnread, forbiddenIn, forbiddenOutside, hiddenInView, withForbidden } from '../protect/forbidden.ts'
import { createStubs, gitStub, type Stubs } from '../protect/placeholders.ts'
import { isWithin, type Places } from '../protect/places.ts'
import { type Discovered, discover, type Guard, guardsFor, MOST, rootNames } from '../protect/protected-mounts.ts'
import { filterProgram } from '../seccomp.ts'
import { type OpenView, openRunningView } from '../transaction/running-view.ts'
import { createTransactions, type Prepared } from '../transaction/transactions.ts'
import { fixedPath } from '../trial-key.ts'
import { verifyMounts } from '../verify.ts'
import { createGroup } from './cgroup.ts'
import { joinNetwork, openLoopback, type SandboxNetwork } from './command-network.ts'
import { insideUser } from './namespaces.ts'
import { isSetUpFailure, runConfined } from './run-confined.ts'
import { chooseCover, type GuardMounts, guardMounts, secretsInside, type View, viewArguments } from './view.ts'
import {
  createGate,
  createLauncher,
  createWarmSandbox,
  type LaunchedSandbox,
  type SandboxRequest,
  type StartGate,
  type ViewKind,
} from './warm-sandbox.ts'

type BubblewrapOptions = { readonly settings: SandboxSettings; readonly places: Places }
type OpenNetwork = Extract<SandboxNetwork, { ok: true }>

/**
 * Creates the sandbox. It runs one trial command, because an installed program does not prove that the kernel lets it work, unless a stored
 * result proves it; then the first command tells if something has changed since.
 */
export async function createBubblewrap({ settings, places }: BubblewrapOptions): Promise<Created> {
  const program = Bun.which('bwrap', { PATH: fixedPath })
  if (program === null) return { ok: false, ...notInstalled }
  const folder = ownFolder(places.stateHome, settings.log)
  if (!folder.ok) return folder
  const arch = process.arch === 'arm64' ? 'arm64' : 'x64'
  const strict = () => (settings.without?.includes('seccomp') ? undefined : filterProgram({ arch, inet: true, unix: false }))
  const way = joinNetwork({ settings, folder: folder.path, filter: strict })
  if (!way.ok) {
    folder.remove()
    return way
  }
  const confiner = createConfiner({ settings, places, program, folder, way })
  const views = await confiner.privateViews()
  if (settings.tried || confiner.isProven())
    return { ok: true, sandbox: { name: 'bubblewrap', ...confiner, spawn: withAdvice(confiner.spawn) } }
  const sandbox: Sandbox = { name: 'bubblewrap', ...confiner }
  const signal = new AbortController().signal
  const command = { argv: ['/bin/sh', '-c', ':'], cwd: places.workspace, env: {}, signal, onOutput() {} }
  const trial = await confiner.spawn({ ...command, view: views.ok ? 'private' : 'direct' })
  if (trial.ok) trial.view?.drop()
  if (trial.ok && trial.code === 0) return { ok: true, sandbox }
  confiner.close()
  return { ok: false, ...doesNotWork(trial.ok ? `a trial ended with ${trial.code ?? trial.signal}` : trial.message) }
}

/** Adds the advice to the first command, which finds out without a trial that something has changed. */
function withAdvice(spawn: Spawn): Spawn {
  return async (plan) => {
    const ended = await spawn(plan)
    return isSetUpFailure(ended) ? { ok: false, message: doesNotWork(ended.message).missing } : ended
  }
}

type Confiner = BubblewrapOptions & {
  readonly program: string
  readonly folder: { readonly path: string; remove(): void }
  readonly way: OpenNetwork
}

function createConfiner({ settings, places, program, folder, way }: Confiner) {
  const without = new Set(settings.without ?? [])
  const libc = openLibc()
  const limited = !without.has('limits')
  const group = limited ? createGroup({ limits: settings.limits }) : undefined
  const stubs = createStubs({ workspace: places.workspace, libc })
  const cover = chooseCover(without)
  const blank = written(folder.path, 'blank', new Uint8Array(), 0)
  const outside = forbiddenOutside(places.workspace, settings.forbiddenPaths?.() ?? [])
  const filesystem = prepareFilesystem({ settings, places, folder: folder.path, blank, cover, user: insideUser() })
  const view = {
    places,
    filesystem,
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
  const transactions = createTransactions({ places, bubblewrap: program, libc, log: settings.log })
  const parts = { program, folder: folder.path, view, fixed: mounts.fixed, way, gate, group, filter, transactions, libc }
  const launch = createLauncher(parts)
  const warmSandbox = createWarmSandbox(launch)
  const requestFor = (plan: Ahead, view: ViewKind): { readonly ok: true; readonly request: SandboxRequest } | Failure => {
    const { outside } = plan
    const readablePaths = plan.readablePaths?.filter(({ path }) => outside === undefined || !isWithin(path, outside.common))
    const guards = mounts.guards((path) => stubs.make(path), view === 'direct' ? plan : { readablePaths, view: 'private' })
    if (!guards.ok) return guards
    const { caches, loopback } = plan
    const early = [...guards.mounts.early, ...(outside?.hidden ?? []).flatMap(cover)]
    const key = `${startOf(view, plan)}${guards.mounts.key}`
    return { ok: true, request: { ...guards.mounts, early, view, caches, loopback, outside, key } }
  }
  const isUnread = forbiddenReads({ patterns: settings.forbiddenReads ?? [], workspace: places.workspace, home: places.home })
  /** Tells whether commands must not read a path, even if it appeared after they began. */
  const isHidden = (path: string) =>
    isUnread(path) !== undefined ||
    [...view.secretPaths, places.stateHome, ...(settings.forbiddenPaths?.() ?? [])].some((hidden) => isWithin(path, hidden))
  const runningView = (pid: number, { transaction: { folder } }: Prepared, { caches, outside }: SandboxRequest) => {
    const copyInto = () => {
      const { transaction, view } = transactions.prepare({ readOnly: false, caches, outside })
      return { folder: transaction.folder, view, drop: transaction.drop }
    }
    return openRunningView({ pid, folder, workspace: places.workspace, libc, isHidden, prepare: copyInto })
  }
  type Opened = { running?: OpenView }
  const run = (plan: SpawnPlan, { waiting, prepared }: LaunchedSandbox, request: SandboxRequest, opened: Opened): Promise<SpawnResult> => {
    const prepare = (pid: number) => (limited ? limitProcess({ libc, pid, limits: settings.limits }) : undefined)
    const inspect = async (pid: number) => {
      const wrong = await verifyMounts(pid, without.has('mount namespace') ? [] : request.deep)
      if (wrong !== undefined || plan.onView === undefined || prepared === undefined) return wrong
      const running = await runningView(pid, prepared, request)
      if (typeof running === 'string') return running
      opened.running = running
      plan.onView(running)
    }
    // Without these two layers the processes and the /tmp of the machine would be measured.
    const watches = limited && !without.has('pid namespace') && !without.has('mount namespace')
    const watch = watches ? (pid: number, kill: () => void) => watchUse({ pid, limits: settings.limits, kill }) : undefined
    return runConfined({ waiting, command: commandOf({ plan, way, filesystem }), plan, prepare, inspect, watch })
  }
  /** Tells whether the command needs a view to read caches; without caches the workspace itself shows the same files, at a lower cost. */
  const readsCaches = ({ readOnly, view, caches }: Ahead) => readOnly === true && view !== 'direct' && transactions.hasCaches(caches)
  /** Leaves the git directory outside the workspace read-only for commands that no view separates from it. */
  const withOutside = async <P extends Ahead>(plan: P): Promise<P> => {
    const takes = plan.outside !== undefined && isPrivate(plan) && (await transactions.takes(plan.outside.common))
    return takes ? plan : { ...plan, outside: undefined }
  }
  const state = { ran: false }
  const start = async (given: SpawnPlan): Promise<SpawnResult> => {
    const plan = await withOutside(given)
    const reads = readsCaches(plan) && (await transactions.views()).ok
    const found = requestFor(plan, reads ? 'reading' : kindOf(plan))
    if (!found.ok) return found
    const { request } = found
    // A sandbox that waits has an empty stdin.
    const sandboxed = typeof plan.stdin === 'number' ? launch({ ...request, stdin: plan.stdin }) : warmSandbox.take(request)
    if (sandboxed instanceof Error) return { ok: false, message: `the sandbox could not be started: ${sandboxed.message}` }
    const { prepared } = sandboxed
    prepared?.begin()
    const next = () => setTimeout(() => warmSandbox.prepare(request), 0).unref()
    // Commands come in series: from the second on, the next sandbox starts while this command runs. A command that writes to the workspace
    // itself has place holders there, which must be removed before.
    if (state.ran && (plan.readOnly || request.view === 'private')) next()
    state.ran = true
    const opened: Opened = {}
    const ended = await run(plan, sandboxed, request, opened)
    // An overlay whose descriptor is open stays mounted.
    opened.running?.close()
    // After the first command, the next sandbox starts when that command has ended: earlier, it would delay a single command.
    next()
    if (prepared === undefined) return ended
    if (ended.ok && request.view === 'private') {
      if (opened.running === undefined) return { ...ended, view: prepared.view() }
      // Compares what others changed since the command began with what the command was given.
      const view = opened.running.end(prepared.view())
      prepared.transaction.begin()
      return { ...ended, view }
    }
    prepared.transaction.drop()
    if (ended.ok || !isSetUpFailure(ended)) return ended
    transactions.forget()
    return { ok: false, message: doesNotWork(ended.message).missing }
  }
  const startAhead = (plan: Ahead) => {
    const kind = readsCaches(plan) ? 'reading' : kindOf(plan)
    // A sandbox on the workspace itself needs place holders when its command writes.
    const isReady = kind === 'direct' ? plan.readOnly === true : transactions.isReady()
    // The kept sandbox of this kind is most likely right, and finding out for sure would cost as much as it will cost the command again.
    if (warmSandbox.keeps(startOf(kind, plan))) return
    const found = isReady ? requestFor(plan, kind) : undefined
    mounts.forget()
    if (found?.ok) warmSandbox.prepare(found.request)
  }
  return {
    spawn: guarded({ stubs, gate, start }),
    privateViews: transactions.views,
    isProven: transactions.isProven,
    openLoopback: () => openLoopback({ program, mark: [markOption, sandboxMark(folder.path)] }),
    warm(plan: Ahead) {
      if (plan.outside === undefined) startAhead(plan)
      else void withOutside(plan).then(startAhead)
    },
    describe: () => describeBubblewrap({ settings, group: group?.words, views: transactions.words(), without }),
    close() {
      way.stop()
      folder.remove()
      filesystem.tidy()
      void warmSandbox.close().then(group?.remove)
    },
  }
}

/** Returns the start of the key: a waiting sandbox has the caches of one owner mounted, and a copy of the index. */
function startOf(view: ViewKind, { caches, loopback, outside }: Ahead): string {
  const index = outside?.index === undefined ? undefined : statSync(outside.index, { throwIfNoEntry: false })
  return `${view}\0${view === 'direct' ? '' : JSON.stringify([caches, outside, index?.ino, index?.mtimeMs])}\0${loopback?.key ?? ''}\0`
}

type Failure = { readonly ok: false; readonly message: string }

function kindOf(plan: Ahead): ViewKind {
  return isPrivate(plan) ? 'private' : 'direct'
}

/** Tells whether the command gets a view of its own: one that cannot write needs none. */
function isPrivate({ view, readOnly }: Ahead): boolean {
  return view === 'private' && !readOnly
}

/** Keeps the gate open while any command runs, and the place holders in place while one runs in the workspace itself. */
function guarded({ stubs, gate, start }: { readonly stubs: Stubs; readonly gate: StartGate; readonly start: Spawn }): Spawn {
  return async (plan) => {
    if (plan.signal.aborted) return { ok: false, message: 'cancelled before it started' }
    const wrong =
      plan.argv[0] === undefined
        ? 'the command names no program'
        : existsSync(plan.cwd)
          ? undefined
          : `its folder ${plan.cwd} does not exist`
    if (wrong !== undefined) return { ok: false, message: `cannot start ${JSON.stringify(plan.argv[0] ?? '')}: ${wrong}` }
    const holds = !isPrivate(plan) && !plan.readOnly
    try {
      if (holds) await stubs.acquire()
    } catch (error) {
      return { ok: false, message: `the workspace cannot be used: ${errorText(error)}` }
    }
    gate.open()
    const state = { isOpen: true }
    const shut = () => {
      if (state.isOpen) gate.shut()
      state.isOpen = false
    }
    // A long command must not keep the gate open: its sandbox is set up when its view exists.
    const onView: SpawnPlan['onView'] = (view) => {
      shut()
      plan.onView?.(view)
    }
    try {
      return await start(plan.onView === undefined ? plan : { ...plan, onView })
    } catch (error) {
      return { ok: false, message: `the sandbox could not be set up: ${errorText(error)}` }
    } finally {
      shut()
      if (holds) stubs.release()
    }
  }
}

type CommandParts = { readonly plan: SpawnPlan; readonly way: OpenNetwork; readonly filesystem: CommandFilesystem }

function commandOf({ plan, way, filesystem }: CommandParts): SandboxCommand {
  // git would rewrite its index only to remember file times, and every command would seem to change the repository.
  const git: ChildEnvironment = isPrivate(plan) ? { GIT_OPTIONAL_LOCKS: '0' } : {}
  // A command with the user number of root has no right to give files to other users, and tar would end with an error.
  const tar: ChildEnvironment = process.geteuid?.() === 0 ? { TAR_OPTIONS: '--no-same-owner' } : {}
  const { argv, stdin } = plan
  return { argv, stdin, cwd: realpathSync(plan.cwd), env: { ...filesystem.environment(plan.env), ...git, ...tar, ...way.env } }
}

function written(folder: string, name: string, bytes: Uint8Array, mode: number): string {
  const path = join(folder, name)
  writeFileSync(path, bytes, { mode })
  return path
}

/** Describes the layers of a bubblewrap sandbox for `doctor` and the receipts. */
type LayersInUse = {
  readonly settings: SandboxSettings
  readonly group: string | undefined
  readonly views: string
  readonly without: ReadonlySet<Layer>
}

function describeBubblewrap({ settings, group, views, without }: LayersInUse): string[] {
  const { limits, allowedDomains } = settings
  const network =
    allowedDomains.length === 0 ? 'nothing but a loopback of its own' : `a proxy that lets through ${allowedDomains.join(', ')}`
  const all: readonly (readonly [Layer | 'always', string])[] = [
    [
      'mount namespace',
      `mount namespace: ${settings.workspace} writable, /tmp and HOME private, programs, your own tools and a small /etc read-only, all else absent`,
    ],
    ['mount namespace', `private views of the workspace: ${views}`],
    [
      'protected paths',
      'protected paths: git hooks and settings, and what other programs run or obey unasked, are read-only; new ones that running programs watch are refused',
    ],
    ['hidden files', 'hidden files: forbidden paths, our state, secrets and what only this user may read cannot be opened'],
    ['unread files', 'unread files: what matches security.forbidden_reads in the workspace cannot be opened'],
    ['refused programs', `refused programs: ${settings.forbiddenCommands?.join(', ') || 'none'}`],
    ['small /etc', 'small /etc: no users, services, keys and other settings of this machine'],
    ['network namespace', `network namespace: ${network}`],
    ['pid namespace', 'pid namespace: no process outside is seen; all processes inside end with the command'],
    ['ipc namespace', 'ipc namespace: no shared memory or message queue of others'],
    ['nested namespaces', 'nested namespaces: no program inside can make a user namespace, and so no mount of its own'],
    ['always', 'user, uts and cgroup namespaces, no capabilities, no_new_privs, a session without terminal'],
    [
      'seccomp',
      'seccomp: no ptrace, mounts, new namespaces, io_uring, bpf, keyrings, devices, set-user-ID programs, terminal injection, foreign sockets',
    ],
    ['limits', `limits: ${limits.memoryBytes} B of data, ${limits.fileBytes} B a file, ${limits.cpuSeconds} s of processor time a process`],
    ['limits', commonLimits({ settings, group })],
    ['environment', 'environment: only what the tool gives; that of our own process cannot be read'],
  ]
  return all.filter(([layer]) => layer === 'always' || !without.has(layer)).map(([, words]) => words)
}

/** Watched from outside; a control group also stops what is quicker than the watcher. */
function commonLimits({ settings: { limits }, group }: Pick<LayersInUse, 'settings' | 'group'>): string {
  const { totalMemoryBytes = limits.memoryBytes, diskBytes, processes } = limits
  const written = diskBytes === undefined ? '' : `, ${diskBytes} B written`
  const watched = `limits of all processes together: ${totalMemoryBytes} B of memory with /tmp${written}, ${processes} processes; beyond, the command is ended`
  return group === undefined ? watched : `${watched} (control group: ${group})`
}

type Mounting = { readonly settings: SandboxSettings; readonly view: View; readonly gitStub: string }
type Guarded = { readonly ok: true; readonly mounts: GuardMounts } | { readonly ok: false; readonly message: string }

type Mounts = {
  fixed(): readonly string[]
  /** `make` creates a place holder and returns whether the mount needs it. */
  guards(make: (path: string) => boolean, plan: Ahead): Guarded
  /** Makes the next command search the workspace again, because the search ahead of it may be old. */
  forget(): void
}

/** Limits the age of a search for repositories and deeper names: a search at every command would cost more than the command. */
const SEARCH_MS = 5_000
/**
 * Limits the age of a search for unread files, per folder (twenty times as long as it takes on an idle machine) and in all: a small
 * workspace is searched at every command.
 */
const [FOLDER_MS, LONGEST_MS] = [0.15, 500]

/** Computes the mounts of a sandbox: the system mounts once, and those of protected names at each command, because names change. */
function createMounts({ settings, view, gitStub }: Mounting): Mounts {
  const known: {
    fixed?: readonly string[]
    discovered?: Discovered
    searched?: number
    unread?: { readonly files: readonly string[]; readonly until: number }
  } = {}
  const { workspace } = view.places
  const discovered = () => {
    if (known.discovered !== undefined && performance.now() - (known.searched ?? 0) < SEARCH_MS) return known.discovered
    known.discovered = search(settings, workspace)
    known.searched = performance.now()
    return known.discovered
  }
  const unread = (): readonly string[] => {
    if (view.without.has('unread files')) return []
    if (known.unread !== undefined && performance.now() < known.unread.until) return known.unread.files
    const { files, complete, folders } = findUnread({ patterns: settings.forbiddenReads ?? [], workspace, home: view.places.home })
    known.unread = { files, until: performance.now() + Math.min(folders * FOLDER_MS, LONGEST_MS) }
    if (!complete) settings.log('warn', 'sandbox: too many folders or files to hide every file of forbidden_reads', {})
    return files
  }
  return {
    fixed() {
      known.fixed ??= viewArguments(view)
      return known.fixed
    },
    forget() {
      delete known.unread
    },
    guards(make, { readablePaths, readOnly, writablePaths, view: kind }) {
      const besides = { view, gitStub, readablePaths, readOnly, writablePaths, direct: kind !== 'private' && readOnly !== true }
      if (view.without.has('protected paths')) return { ok: true, mounts: guardMounts({ ...besides, guards: [] }) }
      const forbidden = forbiddenIn(workspace, [...(settings.forbiddenPaths?.() ?? []), ...unread(), ...secretsInside(view)])
      if (kind === 'private') return { ok: true, mounts: guardMounts({ ...besides, guards: hiddenInView({ workspace, forbidden }) }) }
      const { repositories, names } = discovered()
      const near = [...new Set([...rootNames(workspace), ...names])]
      const found = guardsFor({ workspace, extra: settings.protectedPaths, repositories, names: near })
      if (!found.ok) return found
      const all = withForbidden({ workspace, guards: found.guards, forbidden })
      if (!all.ok) return all
      // Everything outside of the writable paths is read-only by the mount of the workspace.
      const isNeeded = ({ type, path }: Guard) => type === 'hide' || (writablePaths?.some((folder) => isWithin(path, folder)) ?? true)
      const guards = all.guards.filter((guard) => isNeeded(guard) && (guard.type !== 'absent' || (!readOnly && make(guard.path))))
      return { ok: true, mounts: guardMounts({ ...besides, guards }) }
    },
  }
}

function search({ log }: SandboxSettings, workspace: string): Discovered {
  const found = discover(workspace)
  const { repositories, names, complete } = found
  if (!complete)
    log('warn', 'sandbox: the workspace has too many folders to look for every git repository and protected name', {
      found: repositories.length,
    })
  if (names.length > MOST)
    log('warn', `sandbox: of the protected names in the workspace only the ${MOST} nearest to its root are read-only`, {
      found: names.length,
    })
  return found
}
