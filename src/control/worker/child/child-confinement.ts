/** Finds out how children can be confined on this machine, says what that prevents, and builds bubblewrap's arguments for one child. */

import { existsSync, lstatSync, realpathSync } from 'node:fs'
import { basename, dirname, sep } from 'node:path'
import { namespaceArguments } from '../../../sandbox/bubblewrap/namespaces.ts'
import { processes, systemFolders, systemMounts } from '../../../sandbox/bubblewrap/view.ts'
import type { Layer } from '../../../sandbox/contract.ts'
import { privateBelow } from '../../../sandbox/filesystem/system-files.ts'
import { findToolchains } from '../../../sandbox/filesystem/toolchains.ts'
import { isWithin } from '../../../sandbox/protect/places.ts'
import { fixedPath } from '../../../sandbox/trial-key.ts'
import { type RelayPlaces, relayProblem } from './control-relay.ts'

/**
 * `bubblewrap`: namespaces and mounts of its own. `setpriv`: the kernel kills the child when the worker dies. `group`: a guard process
 * kills the child's group when the worker dies.
 */
export type ConfinementWay = 'bubblewrap' | 'setpriv' | 'group'

export type Confinement = {
  readonly way: ConfinementWay
  /** The program of the way; absent for `group`. */
  readonly program?: string
  /** `control`: the child reaches the control plane and nothing else. */
  readonly network: 'control' | 'host'
  /** Says what is enforced, one line each, for a person. */
  readonly holds: readonly string[]
}

type ConfinementOptions = Pick<BubblewrapOptions, 'apiUrl' | 'network'> & { readonly find?: (program: string) => string | undefined }

const systemProgram = (program: string) => Bun.which(program, { PATH: fixedPath }) ?? undefined

export async function findConfinement({ apiUrl, network, find = systemProgram }: ConfinementOptions): Promise<Confinement> {
  const bubblewrap = find('bwrap')
  if (bubblewrap !== undefined && (await works(bubblewrap)))
    return confined({ bubblewrap, apiUrl, network, hasSocat: find('socat') !== undefined })
  const setpriv = find('setpriv')
  const why = bubblewrap === undefined ? 'bubblewrap is not installed' : 'bubblewrap does not work here'
  const common = [`${why}: the child may read and write whatever this user may`, 'network: open']
  if (setpriv !== undefined)
    return {
      way: 'setpriv',
      program: setpriv,
      network: 'host',
      holds: ['processes: the kernel kills the child with the worker', ...common],
    }
  return { way: 'group', network: 'host', holds: ["processes: a guard kills the child's group with the worker", ...common] }
}

type BubblewrapOptions = {
  readonly bubblewrap: string
  readonly apiUrl: string
  readonly network: 'control' | 'host'
  readonly hasSocat: boolean
}

function confined({ bubblewrap, apiUrl, network, hasSocat }: BubblewrapOptions): Confinement {
  const open = openBecause({ apiUrl, network, hasSocat })
  const holds = [
    'processes: a PID namespace of its own, which ends with the worker',
    'files: it writes only to its copy of the workspace and to its own folder; home folders are not visible',
    open === undefined ? 'network: only the control plane' : `network: open, because ${open}`,
  ]
  return { way: 'bubblewrap', program: bubblewrap, network: open === undefined ? 'control' : 'host', holds }
}

function openBecause({ apiUrl, network, hasSocat }: Omit<BubblewrapOptions, 'bubblewrap'>): string | undefined {
  if (network === 'host') return '--network host asks for it'
  if (!hasSocat) return 'the program socat is not installed'
  return relayProblem(apiUrl)
}

/** Tries bubblewrap, because the kernel may forbid what an installed program needs. */
async function works(bubblewrap: string): Promise<boolean> {
  const trial = ['--unshare-user', '--unshare-pid', '--unshare-net', '--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev']
  try {
    const child = Bun.spawn([bubblewrap, ...trial, '--', '/bin/sh', '-c', ':'], { env: {}, stdio: ['ignore', 'ignore', 'ignore'] })
    return (await child.exited) === 0
  } catch {
    return false
  }
}

/** Lists what the child of one run is, and what it may see. */
export type ConfinedChild = {
  /** The program as it was found: an absolute path. */
  readonly program: string
  /** The copy, and where the child sees it. */
  readonly copy: string
  readonly workspace: string
  /** The child's own folder, at the same path inside. */
  readonly home: string
  /** The user's home folder; only installed tools in it are visible. */
  readonly userHome: string
  readonly path: string
  readonly readable: readonly string[]
  /** An empty file that covers files which only their owner may read. */
  readonly blank: string
  /** Absent: the child uses the network of the machine. */
  readonly relay?: RelayPlaces
}

/** The child finds the socket of the relay here. */
export const relayInside = '/run/controlplane.sock'
/** These descriptors of the child are the status file of bubblewrap and the system-call filter. */
const statusDescriptor = '3'
const filterDescriptor = '5'

export function bubblewrapWords(child: ConfinedChild): readonly string[] {
  const { copy, workspace, home, relay } = child
  return [
    ...namespaces(relay),
    ...systemMounts(),
    ...hiddenFiles(child),
    ...['--tmpfs', '/tmp', '--dev', '/dev'],
    ...processes({ without: new Set() }),
    ...toolMounts(child),
    ...['--bind', copy, workspace, '--bind', home, home],
    ...(relay === undefined ? resolverMounts() : relayMounts(relay)),
    ...['--remount-ro', '/', '--chdir', workspace, '--seccomp', filterDescriptor, '--json-status-fd', statusDescriptor],
  ]
}

function namespaces(relay: RelayPlaces | undefined): readonly string[] {
  const without = new Set<Layer>(relay ? [] : ['network namespace'])
  // The option would put the child into a second user namespace, whose capability does not count for the network; the filter refuses new ones too.
  if (isLow(relay)) without.add('nested namespaces')
  // The child has its own network, so no other program can listen there.
  return [...namespaceArguments(without, 'worker'), ...(isLow(relay) ? ['--cap-add', 'CAP_NET_BIND_SERVICE'] : [])]
}

const isLow = (relay: RelayPlaces | undefined) => relay !== undefined && relay.port < 1_024

function hiddenFiles({ blank }: ConfinedChild): readonly string[] {
  const hidden = privateBelow('/etc')
  return [...hidden.folders.flatMap((path) => ['--tmpfs', path]), ...hidden.files.flatMap((path) => ['--ro-bind', blank, path])]
}

/** Mounts the program with the packages that it needs, the user's tools, and what the operator lists. */
function toolMounts({ program, userHome, path, readable, blank }: ConfinedChild): readonly string[] {
  const tools = findToolchains({ path, home: userHome, except: [] })
  const existing = [...tools.mounts, ...packageOf(program), ...readable].filter((one) => existsSync(one) && !isSystem(one))
  const mounts = [...new Set(existing)].toSorted()
  const isCovered = mounts.some((mount) => isWithin(program, mount)) || isSystem(program)
  return [
    ...mounts.flatMap(readOnly),
    ...(isCovered ? [] : ['--ro-bind', realpathSync(program), program]),
    ...tools.secrets.flatMap((one) => (lstatSync(one).isDirectory() ? ['--tmpfs', one] : ['--ro-bind', blank, one])),
  ]
}

/** Returns the folder of packages of a program that npm installed, because it needs the other packages there. */
function packageOf(program: string): readonly string[] {
  return [program, realpathSync(program)].flatMap((path) => {
    const parts = dirname(path).split(sep)
    const at = parts.indexOf('node_modules')
    return at < 0 ? [] : [parts.slice(0, at + 1).join(sep)]
  })
}

function isSystem(path: string): boolean {
  return systemFolders.some((folder) => isWithin(path, folder))
}

/** Mounts the target of /etc/resolv.conf, which is often a link to a file outside of /etc. */
function resolverMounts(): readonly string[] {
  const file = '/etc/resolv.conf'
  if (!existsSync(file)) return []
  const real = realpathSync(file)
  return isWithin(real, '/etc') || basename(real) === '' ? [] : readOnly(real)
}

function relayMounts({ socket, hosts }: RelayPlaces): readonly string[] {
  return ['--ro-bind', socket, relayInside, ...(existsSync('/etc/hosts') ? ['--ro-bind', hosts, '/etc/hosts'] : [])]
}

function readOnly(path: string): readonly string[] {
  return ['--ro-bind', path, path]
}
