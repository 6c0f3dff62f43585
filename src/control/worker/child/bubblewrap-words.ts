/** Builds bubblewrap's arguments for the child of one run. */

import { existsSync, lstatSync, readlinkSync, realpathSync } from 'node:fs'
import { basename, dirname, sep } from 'node:path'
import { hasOption } from '../../../sandbox/install.ts'
import { isWithin } from '../../../sandbox/protect/places.ts'
import { privateBelow } from '../../../sandbox/surroundings/private-files.ts'
import { findToolchains } from '../../../sandbox/surroundings/toolchains.ts'
import type { RelayPlaces } from './control-relay.ts'

export type ConfinedChild = {
  /** The program as it was found: an absolute path. */
  readonly program: string
  /** The copy, and where the child sees it. */
  readonly copy: string
  readonly workspace: string
  /** The child's own folder, at the same path inside. */
  readonly home: string
  /** The user's home folder, of which only installed tools are visible. */
  readonly userHome: string
  readonly path: string
  readonly readable: readonly string[]
  /** An empty file that covers files nobody but their owner may read. */
  readonly blank: string
  /** Absent: the network of the machine. */
  readonly relay?: RelayPlaces
}

/** Where the child finds the socket of the relay. */
export const relayInside = '/run/controlplane.sock'
/** Descriptors of the child: the status file of bubblewrap, and the system-call filter. */
export const statusDescriptor = '3'
export const filterDescriptor = '5'

const systemFolders = ['/usr', '/opt', '/nix/store', '/gnu/store']
const linkedFolders = ['/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32']

export function bubblewrapWords(child: ConfinedChild): readonly string[] {
  const { copy, workspace, home, relay } = child
  return [
    ...namespaces(relay),
    ...systemMounts(child),
    ...['--tmpfs', '/tmp', '--dev', '/dev', '--proc', '/proc'],
    ...(process.getuid?.() === 0 ? ['--remount-ro', '/proc'] : []),
    ...toolMounts(child),
    ...['--bind', copy, workspace, '--bind', home, home],
    ...(relay === undefined ? resolverMounts() : relayMounts(relay)),
    ...['--remount-ro', '/', '--chdir', workspace, '--seccomp', filterDescriptor, '--json-status-fd', statusDescriptor],
  ]
}

function namespaces(relay: RelayPlaces | undefined): readonly string[] {
  const [uid, gid] = [process.geteuid?.() ?? 0, process.getegid?.() ?? 0]
  return [
    ...['--unshare-user', '--uid', String(uid), '--gid', String(gid)],
    ...['--unshare-pid', '--unshare-ipc', '--unshare-uts', '--hostname', 'worker', '--unshare-cgroup-try'],
    ...(relay ? ['--unshare-net'] : []),
    // It would put the child into a second user namespace, whose capability does not count for the network; the filter refuses new ones too.
    ...(hasOption('--disable-userns') && !isLow(relay) ? ['--disable-userns'] : []),
    ...['--cap-drop', 'ALL', '--new-session', '--die-with-parent'],
    // In a network of its own nobody else could listen there.
    ...(isLow(relay) ? ['--cap-add', 'CAP_NET_BIND_SERVICE'] : []),
  ]
}

const isLow = (relay: RelayPlaces | undefined) => relay !== undefined && relay.port < 1_024

function systemMounts({ blank }: ConfinedChild): readonly string[] {
  const hidden = privateBelow('/etc')
  return [
    ...systemFolders.filter((path) => existsSync(path)).flatMap(readOnly),
    ...linkedFolders.flatMap(linkOrFolder),
    ...readOnly('/etc'),
    ...hidden.folders.flatMap((path) => ['--tmpfs', path]),
    ...hidden.files.flatMap((path) => ['--ro-bind', blank, path]),
  ]
}

function linkOrFolder(path: string): readonly string[] {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  if (stat?.isSymbolicLink()) return ['--symlink', readlinkSync(path), path]
  return stat?.isDirectory() ? readOnly(path) : []
}

/** The program with what belongs to it, the user's tools, and what the operator lists. */
function toolMounts({ program, userHome, path, readable, blank }: ConfinedChild): readonly string[] {
  const tools = findToolchains({ path, home: userHome, except: [] })
  const wanted = [...tools.mounts, ...packageOf(program), ...readable].filter((one) => existsSync(one) && !isSystem(one))
  const mounts = [...new Set(wanted)].toSorted()
  const isCovered = mounts.some((mount) => isWithin(program, mount)) || isSystem(program)
  return [
    ...mounts.flatMap(readOnly),
    ...(isCovered ? [] : ['--ro-bind', realpathSync(program), program]),
    ...tools.secrets.flatMap((one) => (lstatSync(one).isDirectory() ? ['--tmpfs', one] : ['--ro-bind', blank, one])),
  ]
}

/** A program from a package of npm needs the other packages beside it. */
function packageOf(program: string): readonly string[] {
  return [program, realpathSync(program)].flatMap((path) => {
    const parts = dirname(path).split(sep)
    const at = parts.indexOf('node_modules')
    return at < 0 ? [] : [parts.slice(0, at + 1).join(sep)]
  })
}

function isSystem(path: string): boolean {
  return [...systemFolders, ...linkedFolders, '/etc'].some((folder) => isWithin(path, folder))
}

/** The file that names the resolver is often a link to a place outside of /etc. */
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
