/** Starts sandboxes that wait for a command, on the workspace itself or on a private view of it. */

import type { Ahead, Layer } from '../confinement.ts'
import { receiver } from '../late-command.ts'
import type { Libc } from '../libc.ts'
import { markOption, sandboxMark } from '../owner/sandbox-mark.ts'
import type { Prepared, Transactions } from '../transaction/transactions.ts'
import type { Group } from './cgroup.ts'
import { enterGroup, isolationArguments } from './namespaces.ts'
import type { SandboxNetwork } from './proxy-network.ts'
import { descriptors, startWaiting, type Waiting } from './run-confined.ts'
import type { Gate } from './start-gate.ts'
import { directWorkspace, type GuardMounts, type View } from './view.ts'

/** `reading`: a private view that nothing can be written to, so that a command sees what earlier commands left in their caches. */
export type ViewKind = 'private' | 'reading' | 'direct'
export type Wanted = GuardMounts & Pick<Ahead, 'caches' | 'loopback'> & { readonly view: ViewKind }

/** `prepared` belongs to a private view. */
export type Sandboxed = { readonly waiting: Waiting; readonly prepared: Prepared | undefined; drop(): void }

export type Launching = {
  readonly program: string
  /** Path of our private folder, which marks our processes. */
  readonly folder: string
  readonly view: View
  readonly fixed: () => readonly string[]
  readonly way: Extract<SandboxNetwork, { ok: true }>
  readonly gate: Gate
  readonly group: Group | undefined
  readonly filter: string | undefined
  readonly transactions: Transactions
  readonly libc: Libc
}

export function createLauncher(launching: Launching): (wanted: Wanted) => Sandboxed | Error {
  const { program, folder, view, fixed, way, gate, group, filter, transactions, libc } = launching
  const { without, places } = view
  const mark = [markOption, sandboxMark(folder)]
  const words = [program, ...mark, '--args', descriptors.options, '--', ...way.prologue, ...receiver(descriptors.command)]
  const last = [...(without.has('mount namespace') ? [] : ['--remount-ro', '/']), '--chdir', places.workspace]
  return ({ early, late, view: kind, caches, loopback }) => {
    const prepared = kind === 'direct' ? undefined : attempt(() => transactions.prepare({ readOnly: kind === 'reading', caches }))
    if (prepared instanceof Error) return prepared
    const workspace = prepared?.launch.mounts ?? directWorkspace(view)
    const mounts = [...fixed(), ...workspace, ...early, ...way.mounts, ...gate.arguments, ...late]
    const options = [...isolationArguments(without, loopback !== undefined), ...mounts, ...last]
    const argv = [...enterGroup(group?.join ?? []), ...(loopback?.words ?? []), ...(prepared?.launch.before ?? []), ...words]
    const waiting = startWaiting({ argv, options, env: environmentOf(without), filter, libc })
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
