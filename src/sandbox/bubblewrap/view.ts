/** What a command sees of the file system: bubblewrap's arguments, built once for a sandbox and once more for each command. */

import { existsSync, lstatSync, readlinkSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import type { Layer, ReadablePath } from '../confinement.ts'
import { privateBelow } from '../private-files.ts'
import { isWithin, type Places } from '../protect/places.ts'
import type { Guard } from '../protect/protected-mounts.ts'
import { readableMounts } from '../readable.ts'
import type { Cover } from './empty-mount.ts'

export type View = {
  readonly places: Places
  readonly secretPaths: readonly string[]
  /** An empty file that nobody may read, to lay over secret ones. */
  readonly blank: string
  /** Makes a folder read as empty. */
  readonly cover: Cover
  /** For /tmp, which is memory. */
  readonly scratchBytes: number
  readonly without: ReadonlySet<Layer>
}

const programs = ['/usr', '/opt', '/nix/store', '/gnu/store', '/etc']
const links = ['/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32']
const devices = ['null', 'zero', 'urandom']

/** Everything that is the same for every command. The order matters: later mounts lie on earlier ones. */
export function viewArguments(view: View): string[] {
  const { places, without } = view
  if (without.has('mount namespace')) return ['--bind', '/', '/', ...processes(view), '--dev-bind', '/dev', '/dev']
  return [
    ...programs.filter((path) => existsSync(path)).flatMap((path) => ['--ro-bind', path, path]),
    ...links.flatMap(linkOrFolder),
    ...processes(view),
    ...devices.flatMap((name) => ['--dev-bind', `/dev/${name}`, `/dev/${name}`]),
    ...deviceLinks(),
    ...['--size', String(view.scratchBytes), '--perms', '1777', '--tmpfs', '/tmp', '--symlink', '/tmp', '/var/tmp'],
    ...(without.has('hidden files') ? [] : hiddenOutside(view)),
    ...['--bind', places.workspace, places.workspace],
  ]
}

/**
 * For root read-only as a whole: the kernel lets it, whatever its capabilities, write to /proc/sys and /proc/sysrq-trigger.
 * Without its own PID namespace a fresh /proc cannot be had; then it is the machine's.
 */
function processes({ without }: View): string[] {
  if (without.has('pid namespace')) return ['--ro-bind', '/proc', '/proc']
  return ['--proc', '/proc', ...(process.getuid?.() === 0 ? ['--remount-ro', '/proc'] : [])]
}

function linkOrFolder(path: string): string[] {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  if (stat?.isSymbolicLink()) return ['--symlink', readlinkSync(path), path]
  return stat?.isDirectory() ? ['--ro-bind', path, path] : []
}

/** No terminal, no shared memory of others: programs that ask for /dev/shm get a folder in /tmp. */
function deviceLinks(): string[] {
  const targets = [
    ['urandom', 'random'],
    ['/proc/self/fd', 'fd'],
    ['/proc/self/fd/0', 'stdin'],
    ['/proc/self/fd/1', 'stdout'],
    ['/proc/self/fd/2', 'stderr'],
    ['/tmp', 'shm'],
  ] as const
  return targets.flatMap(([target, name]) => ['--symlink', target, `/dev/${name}`])
}

/** The system's files that only this user and root may read, and whatever of the user's lies among the programs. */
function hiddenOutside(view: View): string[] {
  const system = [privateBelow('/etc'), privateBelow('/opt', 2)]
  const seen = named(view).filter(
    (path) => !isWithin(path, view.places.workspace) && [...programs, ...links].some((root) => isWithin(path, root)),
  )
  return hide(view, [...system.flatMap(({ folders, files }) => [...folders, ...files]), ...seen])
}

function named({ places, secretPaths }: View): string[] {
  return [places.home, places.stateHome, ...secretPaths].filter((path) => existsSync(path)).map((path) => realpathSync(path))
}

function hide({ blank, cover }: View, paths: readonly string[]): string[] {
  return paths.flatMap((path) => (statSync(path).isDirectory() ? cover(path) : ['--ro-bind', blank, path]))
}

export type Guarding = {
  readonly view: View
  readonly guards: readonly Guard[]
  readonly gitStub: string
  readonly readablePaths?: readonly ReadablePath[]
  readonly readOnly?: boolean
}

/** `early` can be mounted before the command is known, as long as `key` stays the same; `late` needs the place holders. */
export type GuardMounts = {
  readonly key: string
  readonly early: readonly string[]
  readonly late: readonly string[]
  /** What is mounted below a folder that a command may put something else in the place of. */
  readonly deep: readonly string[]
}

/** `gitStub` is a file as the place holder for git's `commondir`: the place holder itself need not be there yet when these are read. */
export function guardMounts({ view, guards, gitStub, readablePaths = [], readOnly = false }: Guarding): GuardMounts {
  const there = guards.filter(({ type }) => type !== 'absent')
  const hidden = there.filter(({ type }) => type === 'hide').map(({ path }) => path)
  const secrets = secretsInside(view)
  const { workspace } = view.places
  const readable = readableMounts(readablePaths)
  const early = [
    ...(readOnly ? ['--ro-bind', workspace, workspace] : []),
    ...there
      .filter(({ type }) => type !== 'hide')
      .flatMap(({ type, path }) => [type === 'pin' && !readOnly ? '--bind' : '--ro-bind', path, path]),
    ...hide(view, [...secrets.filter((path) => !hidden.some((folder) => isWithin(path, folder))), ...hidden]),
    ...readable.arguments,
  ]
  const late = guards
    .filter(({ type }) => type === 'absent')
    .flatMap(({ path }) => (basename(path) === 'commondir' ? ['--ro-bind', gitStub, path] : view.cover(path)))
  const inodes = [workspace, ...secrets].map((path) => statSync(path, { throwIfNoEntry: false })?.ino)
  const covered = [...hidden, ...secrets]
  const open = there.map(({ path }) => path).filter((path) => !covered.some((one) => isWithin(path, one)))
  const deep = open.filter((path) => dirname(path) !== workspace)
  return { key: [...inodes, ...there.map(({ inode }) => inode), readable.key, ...early, ...late].join('\0'), early, late, deep }
}

/** Our own files and secrets that stand in the workspace. */
export function secretsInside(view: View): string[] {
  if (view.without.has('hidden files')) return []
  const { workspace } = view.places
  return named(view).filter((path) => path !== workspace && isWithin(path, workspace))
}
