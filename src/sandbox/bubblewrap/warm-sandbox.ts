/** Starts sandboxes that wait for a command, keeps them for the next commands with their namespaces and mounts ready, and discards idle ones. */

import { mkdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import type { Ahead, Layer } from '../contract.ts'
import type { Libc } from '../libc.ts'
import { receiver } from '../pipes/command-pipes.ts'
import { markOption, sandboxMark } from '../private-folder.ts'
import type { Prepared, Transactions } from '../transaction/transactions.ts'
import type { Group } from './cgroup.ts'
import type { SandboxNetwork } from './command-network.ts'
import { enterGroup, isolationArguments } from './namespaces.ts'
import { descriptors, discard, isWaiting, startWaiting, type WaitingSandbox } from './run-confined.ts'
import { type Cover, directWorkspace, type GuardMounts, type View } from './view.ts'

/** The request for a sandbox; two sandboxes with the same key are interchangeable. */
type Keyed = { readonly key: string }
/** `drop` removes what belongs to a sandbox that gets no command. */
type Started = { readonly waiting: WaitingSandbox; readonly drop?: () => void }

type WarmSandbox<W extends Keyed, S extends Started> = {
  /** Returns the kept sandbox if it was started with the same key, otherwise a new one. */
  take(request: W): S | Error
  /** Starts the next sandbox unless one with the same key is kept. */
  prepare(request: W): void
  /** Tells whether a kept sandbox has a key that begins with this text. */
  keeps(start: string): boolean
  close(): Promise<void>
}

/** The time that a sandbox waits for a command, in milliseconds. */
const usualIdleMs = 60_000
/** The number of kept sandboxes: commands that only read and commands that write need different ones, and mostly take turns. */
const MOST = 2

export function createWarmSandbox<W extends Keyed, S extends Started>(
  start: (request: W) => S | Error,
  idleMs = usualIdleMs,
): WarmSandbox<W, S> {
  type IdleSandbox = { readonly started: S; readonly idle: ReturnType<typeof setTimeout> }
  /** Holds the sandboxes in the order in which they were started. */
  const sandboxes = new Map<string, IdleSandbox>()
  const state = { closed: false }
  const give = (key: string) => {
    const found = sandboxes.get(key)
    sandboxes.delete(key)
    clearTimeout(found?.idle)
    return found?.started
  }
  const drop = async (key: string) => {
    const started = give(key)
    if (started === undefined) return
    const discarded = discard(started.waiting)
    // Drop it now, because our process may be about to end, and again later, because the sandbox may have been starting.
    started.drop?.()
    await discarded
    started.drop?.()
  }
  const isKept = (key: string) => {
    const found = sandboxes.get(key)
    return found !== undefined && isWaiting(found.started.waiting)
  }
  return {
    take(request) {
      if (isKept(request.key)) return give(request.key) ?? start(request)
      void drop(request.key)
      return start(request)
    },
    prepare(request) {
      const { key } = request
      if (state.closed || isKept(key)) return
      void drop(key)
      for (const old of [...sandboxes.keys()].slice(0, Math.max(0, sandboxes.size - MOST + 1))) void drop(old)
      const started = start(request)
      if (started instanceof Error) return
      const idle = setTimeout(() => drop(key), idleMs)
      idle.unref()
      sandboxes.set(key, { started, idle })
    },
    keeps: (start) => [...sandboxes.keys()].some((key) => key.startsWith(start) && isKept(key)),
    async close() {
      state.closed = true
      await Promise.all([...sandboxes.keys()].map(drop))
    },
  }
}

/** `reading`: a private view that nothing can be written to, so that a command sees what earlier commands left in their caches. */
export type ViewKind = 'private' | 'reading' | 'direct'
export type SandboxRequest = GuardMounts &
  Pick<Ahead, 'caches' | 'loopback' | 'outside'> & { readonly view: ViewKind; readonly stdin?: number | undefined }

/** `prepared` belongs to a private view. */
export type LaunchedSandbox = { readonly waiting: WaitingSandbox; readonly prepared: Prepared | undefined; drop(): void }

type LauncherParts = {
  readonly program: string
  /** Path of our private folder, which marks our processes. */
  readonly folder: string
  readonly view: View
  readonly fixed: () => readonly string[]
  readonly way: Extract<SandboxNetwork, { ok: true }>
  readonly gate: StartGate
  readonly group: Group | undefined
  readonly filter: string | undefined
  readonly transactions: Transactions
  readonly libc: Libc
}

/** Returns a function that starts a sandbox on the workspace itself or on a private view of it. */
export function createLauncher(launching: LauncherParts): (request: SandboxRequest) => LaunchedSandbox | Error {
  const { program, folder, view, fixed, way, gate, group, filter, transactions, libc } = launching
  const { without, places } = view
  const mark = [markOption, sandboxMark(folder)]
  const words = [program, ...mark, '--args', descriptors.options, '--', ...way.prologue, ...receiver(descriptors.command)]
  const last = [...(without.has('mount namespace') ? [] : ['--remount-ro', '/']), '--chdir', places.workspace]
  return ({ early, late, view: kind, caches, loopback, outside, stdin }) => {
    const prepared = kind === 'direct' ? undefined : attempt(() => transactions.prepare({ readOnly: kind === 'reading', caches, outside }))
    if (prepared instanceof Error) return prepared
    const workspace = prepared?.launch.mounts ?? directWorkspace(view)
    const mounts = [...fixed(), ...workspace, ...early, ...way.mounts, ...gate.arguments, ...late]
    const options = [...isolationArguments(without, loopback !== undefined), ...mounts, ...last]
    const argv = [...enterGroup(group?.join ?? []), ...(loopback?.words ?? []), ...(prepared?.launch.before ?? []), ...words]
    const waiting = startWaiting({ argv, options, env: environmentOf(without), filter, libc, stdin })
    const drop = () => prepared?.transaction.drop()
    if (!(waiting instanceof Error)) return { waiting, prepared, drop }
    drop()
    return waiting
  }
}

/** Passes our whole environment on only in tests, to show the probe what a careless start would leak. */
function environmentOf(without: ReadonlySet<Layer>): { [name: string]: string } {
  if (!without.has('environment')) return {}
  return Object.fromEntries(Object.entries(process.env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])))
}

function attempt<T>(make: () => T): T | Error {
  try {
    return make()
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error))
  }
}

/** Keeps a waiting sandbox from continuing when our process ends: the kernel then closes our descriptor, which looks like "go". */
export type StartGate = {
  /** bubblewrap's arguments: wait, then fail unless the gate is open. */
  readonly arguments: readonly string[]
  /** Opens the gate while a command runs. */
  open(): void
  shut(): void
}

/** The gate in the command line of a sandbox: `--ro-bind …/gate /.gate`. */
export const gateArgument = { option: '--ro-bind', name: 'gate', at: '/.gate' } as const

/**
 * The gate is open while a folder exists in a read-only mount: bubblewrap mounts on that folder and cannot create it. Without the gate,
 * bubblewrap would continue to the protected names and permanently create those that have no place holder.
 */
export function createGate({
  folder,
  cover,
  sealed,
}: {
  readonly folder: string
  readonly cover: Cover
  readonly sealed: boolean
}): StartGate {
  const { option, name, at } = gateArgument
  const gate = join(folder, name)
  const [closed, opened] = [join(gate, 'shut'), join(gate, 'open')]
  mkdirSync(closed, { recursive: true })
  let commands = 0
  return {
    arguments: sealed
      ? [option, gate, at, '--file', descriptors.go, '/.go', ...cover(`${at}/open`), ...cover(at)]
      : ['--file', descriptors.go, join(folder, 'go')],
    open() {
      if (++commands === 1) renameSync(closed, opened)
    },
    shut() {
      if (--commands > 0) return
      // Somebody may have removed the home meanwhile, and with it the gate, without which no sandbox continues.
      attempt(() => renameSync(opened, closed))
    },
  }
}
