/** Builds bubblewrap's arguments for the file system that a command sees: one part once per sandbox, one part for each command. */

import { existsSync, lstatSync, readFileSync, readlinkSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import type { Layer, ReadablePath } from '../contract.ts'
import { type CommandFilesystem, privateFiles } from '../filesystem/command-filesystem.ts'
import { isWithin, type Places } from '../protect/places.ts'
import type { Guard } from '../protect/protected-mounts.ts'
import { readableMounts } from '../readable.ts'

export type View = {
  readonly places: Places
  readonly secretPaths: readonly string[]
  /** An empty file without read permission, mounted over secret files. */
  readonly blank: string
  /** Makes a folder appear empty. */
  readonly cover: Cover
  /** Size limit of /tmp, which is held in memory. */
  readonly scratchBytes: number
  /** The files around the system folders and the workspace; a trial needs none. */
  readonly filesystem?: CommandFilesystem
  readonly without: ReadonlySet<Layer>
}

const programs = ['/usr', '/opt', '/nix/store', '/gnu/store']
const links = ['/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32']
/** Lists the folders of `systemMounts`. */
export const systemFolders: readonly string[] = [...programs, ...links, '/etc']
const devices = ['null', 'zero', 'urandom']

/** Builds the arguments that are equal for every command. The order matters: later mounts cover earlier ones. */
export function viewArguments(view: View): string[] {
  const { without } = view
  if (without.has('mount namespace')) return ['--bind', '/', '/', ...processes(view), '--dev-bind', '/dev', '/dev']
  return [
    ...systemMounts(view.filesystem?.etc),
    ...processes(view),
    ...devices.flatMap((name) => ['--dev-bind', `/dev/${name}`, `/dev/${name}`]),
    ...deviceLinks(),
    ...['--size', String(view.scratchBytes), '--perms', '1777', '--tmpfs', '/tmp', '--symlink', '/tmp', '/var/tmp'],
    ...(without.has('hidden files') ? [] : hiddenOutside(view)),
    ...(view.filesystem?.mounts ?? []),
  ]
}

/** Mounts the programs of the system, and the folder that stands for /etc. */
export function systemMounts(etc = '/etc'): string[] {
  return [
    ...programs.filter((path) => existsSync(path)).flatMap((path) => ['--ro-bind', path, path]),
    ...['--ro-bind', etc, '/etc'],
    ...links.flatMap(linkOrFolder),
  ]
}

/** Puts the workspace itself into the view; it comes after viewArguments. */
export function directWorkspace({ places: { workspace }, without }: Pick<View, 'places' | 'without'>): readonly string[] {
  return without.has('mount namespace') ? [] : ['--bind', workspace, workspace]
}

/**
 * Makes /proc read-only for root: the kernel lets root write to /proc/sys and /proc/sysrq-trigger without any capability. A sandbox without
 * its own PID namespace cannot mount a fresh /proc, so it gets that of the machine.
 */
export function processes({ without }: Pick<View, 'without'>): string[] {
  if (without.has('pid namespace')) return ['--ro-bind', '/proc', '/proc']
  return ['--proc', '/proc', ...(process.getuid?.() === 0 ? ['--remount-ro', '/proc'] : [])]
}

function linkOrFolder(path: string): string[] {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  if (stat?.isSymbolicLink()) return ['--symlink', readlinkSync(path), path]
  return stat?.isDirectory() ? ['--ro-bind', path, path] : []
}

/** Provides no terminal and no shared memory with other processes: programs that use /dev/shm get /tmp. */
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

/** Hides the system files that only this user and root may read, and the user's own paths among the programs. */
function hiddenOutside(view: View): string[] {
  const etc = view.filesystem?.etc
  const shown = [...programs, ...links, ...(etc === undefined ? ['/etc'] : [])]
  const seen = named(view).filter((path) => !isWithin(path, view.places.workspace) && shown.some((root) => isWithin(path, root)))
  return hide(view, [...privateFiles(etc), ...seen])
}

function named({ places, secretPaths }: View): string[] {
  return [places.home, places.stateHome, ...secretPaths].filter((path) => existsSync(path)).map((path) => realpathSync(path))
}

function hide({ blank, cover }: View, paths: readonly string[]): string[] {
  return paths.flatMap((path) => (statSync(path).isDirectory() ? cover(path) : ['--ro-bind', blank, path]))
}

type Guarding = {
  readonly view: View
  readonly guards: readonly Guard[]
  readonly gitStub: string
  readonly readablePaths?: readonly ReadablePath[]
  readonly readOnly?: boolean
  readonly writablePaths?: readonly string[] | undefined
  /** The command works on the workspace itself. */
  readonly direct?: boolean
}

/** bubblewrap can mount `early` before the command is known, as long as `key` stays equal; `late` needs the place holders. */
export type GuardMounts = {
  readonly key: string
  readonly early: readonly string[]
  readonly late: readonly string[]
  /** Paths mounted below a folder that a concurrent command may replace. */
  readonly deep: readonly string[]
}

/**
 * `gitStub` is a file with the content of the place holder for git's `commondir`: bubblewrap may read these arguments before the place
 * holder exists.
 */
export function guardMounts(guarding: Guarding): GuardMounts {
  const { view, guards, gitStub, readablePaths = [], readOnly = false, writablePaths, direct = false } = guarding
  const there = guards.filter(({ type }) => type !== 'absent')
  const hidden = there.filter(({ type }) => type === 'hide').map(({ path }) => path)
  const secrets = secretsInside(view)
  const { workspace } = view.places
  const readable = readableMounts(readablePaths)
  const early = [
    ...(readOnly || writablePaths ? ['--ro-bind', workspace, workspace] : []),
    ...(writablePaths ?? []).flatMap((path) => ['--bind', path, path]),
    ...(direct ? (view.filesystem?.direct ?? []) : []),
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

/** @returns our own files and the secrets that lie in the workspace */
export function secretsInside(view: View): string[] {
  if (view.without.has('hidden files')) return []
  const { workspace } = view.places
  return named(view).filter((path) => path !== workspace && isWithin(path, workspace))
}

/** Returns the arguments of a mount that makes a folder appear empty and refuses all writes. */
export type Cover = (path: string) => readonly string[]

/**
 * Chooses the cheapest cover. Prefers the message queue file system: another mount of it creates no new file system and costs a tenth of a tmpfs, and with a limit of
 * zero bytes (process-limits.ts) nobody can create anything in it. It belongs to the IPC namespace, so a sandbox without its own IPC
 * namespace, or a kernel without message queues, gets a tmpfs.
 */
export function chooseCover(without: ReadonlySet<Layer>): Cover {
  const limited = !without.has('ipc namespace') && !without.has('limits')
  return limited && /\tmqueue$/m.test(readFileSync('/proc/filesystems', 'utf8')) ? queue : memory
}

const queue: Cover = (path) => ['--mqueue', path]

const memory: Cover = (path) => ['--perms', '0555', '--size', '4096', '--tmpfs', path]
