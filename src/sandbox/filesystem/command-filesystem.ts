/** Prepares the file system around the workspace of a command: /etc, the user's tools, a home folder with caches, and refused programs. */

import { existsSync, lstatSync, mkdirSync, realpathSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { textIn } from '../../kit/proc.ts'
import { forbiddenWithoutView } from '../../security/policy.ts'
import type { ChildEnvironment, GitUser, SandboxSettings } from '../contract.ts'
import type { Places } from '../protect/places.ts'
import { fixedPath } from '../trial-key.ts'
import { cacheEnvironment, cacheMounts, commandHome, tidyCaches } from './command-home.ts'
import { prepareEtc, privateBelow } from './system-files.ts'
import { findToolchains } from './toolchains.ts'

export type CommandFilesystem = {
  /** The folder that stands for /etc; undefined when none could be made, and the real one is shown. */
  readonly etc: string | undefined
  /** Mounts after the system folders and /tmp, before the workspace. */
  readonly mounts: readonly string[]
  /** Further mounts for a command that can write to the workspace itself. */
  readonly direct: readonly string[]
  /** Replaces HOME and PATH, and names the caches. */
  environment(given: ChildEnvironment): ChildEnvironment
  /** Removes caches that nobody uses, at most once a day. */
  tidy(): void
}

type Preparing = {
  readonly settings: SandboxSettings
  readonly places: Places
  /** Our private folder of this sandbox, and an unreadable file in it. */
  readonly folder: string
  readonly blank: string
  /** The user and group numbers that the command has inside. */
  readonly user: { readonly uid: number; readonly gid: number }
  cover(path: string): readonly string[]
}

/** Programs of the sandbox itself, when commands have a network. */
const networkTools = ['socat', 'perl', 'grep', 'sleep']

export function prepareFilesystem({ settings, places, folder, blank, cover, user }: Preparing): CommandFilesystem {
  const { allowedDomains, userPath = '', without = [], gitUser } = settings
  const forbidden = without.includes('refused programs') ? [] : (settings.forbiddenCommands ?? [])
  const { home, stateHome, workspace } = places
  const tools = findToolchains({ path: userPath, home, except: [workspace, stateHome] })
  const searched = [...fixedPath.split(':'), ...tools.path]
  const needed = allowedDomains.length > 0 ? networkTools : []
  const refusers = prepareRefusers({ folder, forbidden, searched, needed })
  const direct = forbiddenWithoutView(forbidden)
  const more = direct === forbidden ? refusers : prepareRefusers({ folder: join(folder, 'direct'), forbidden: direct, searched, needed })
  const hide = (path: string) => (statSync(path).isDirectory() ? cover(path) : ['--ro-bind', blank, path])
  const closed = allowedDomains.length === 0 ? offline : {}
  const etc = without.includes('small /etc')
    ? undefined
    : prepareEtc({ run: join(stateHome, 'run'), user: { ...user, name: nameOf(user.uid), home: commandHome }, gitUser })
  return {
    etc,
    mounts: [
      ...cacheMounts(stateHome, workspace),
      ...tools.mounts.flatMap((path) => ['--ro-bind-try', path, path]),
      ...tools.secrets.filter(existsSync).flatMap(hide),
      ...refusers.mounts,
    ],
    direct: more === refusers ? [] : more.mounts,
    environment: (given) => ({
      ...cacheEnvironment,
      ...tools.env,
      ...closed,
      ...(etc === undefined ? given : withoutUser(given, gitUser)),
      HOME: commandHome,
      PATH: [...more.path, ...tools.path, given.PATH ?? fixedPath].join(':'),
    }),
    tidy() {
      try {
        tidyCaches(stateHome)
      } catch (error) {
        settings.log('warn', 'sandbox: old caches of commands could not be removed', { why: String(error) })
      }
    },
  }
}

/** /etc/gitconfig names the user already, and a variable would take precedence over the settings of a repository. */
function withoutUser(given: ChildEnvironment, { name, email }: GitUser = {}): ChildEnvironment {
  const known = { NAME: name, EMAIL: email }
  const isKnown = (key: string, value: string) =>
    Object.entries(known).some(([field, own]) => value === own && [`GIT_AUTHOR_${field}`, `GIT_COMMITTER_${field}`].includes(key))
  return Object.fromEntries(Object.entries(given).filter(([key, value]) => !isKnown(key, value)))
}

/** Keeps package managers from trying again for minutes without a network. */
export const offline: ChildEnvironment = { npm_config_fetch_retries: '0', PIP_RETRIES: '0', CARGO_NET_RETRY: '0' }

/** The runtime's own function takes the name from the environment. */
export function nameOf(uid: number): string {
  const lines = textIn('/etc/passwd').split('\n')
  return lines.find((line) => line.split(':')[2] === String(uid))?.split(':')[0] || 'user'
}

/** @returns the private files of /opt, and of /etc where the sandbox shows the real one */
export function privateFiles(etc: string | undefined): readonly string[] {
  return [privateBelow('/opt', 2), ...(etc === undefined ? [privateBelow('/etc')] : [])].flatMap(({ files, folders }) => [
    ...folders,
    ...files,
  ])
}

type Refusers = {
  /** bubblewrap's mounts over the executables themselves. */
  readonly mounts: readonly string[]
  /** A folder that stands first in the PATH, for names that are links to a program with other uses. */
  readonly path: readonly string[]
}

type Refusing = {
  readonly folder: string
  readonly forbidden: readonly string[]
  /** Folders with executables. */
  readonly searched: readonly string[]
  /** Names of programs that the sandbox itself needs. */
  readonly needed: readonly string[]
}

const INSIDE = '/run/forbidden'
const makers = 'bfs btrfs cramfs exfat ext2 ext3 ext4 f2fs fat minix msdos ntfs vfat xfs'.split(' ').map((name) => `mkfs.${name}`)
/** One executable with many programs in it, among them those that remove and overwrite. */
const collections = ['busybox', 'toybox']

/**
 * Puts a program that refuses in the place of each forbidden executable, however a command gets to start it.
 * A program that is a link cannot be covered by itself: a mount follows the link and would cover the program that it leads to.
 */
function prepareRefusers({ folder, forbidden, searched, needed }: Refusing): Refusers {
  if (forbidden.length === 0) return { mounts: [], path: [] }
  const names = [...new Set([...forbidden.flatMap((name) => (name === 'mkfs' ? [name, ...makers] : [name])), ...collections])]
  const uncovered = new Set(
    ['sh', ...needed].flatMap((name) =>
      searched
        .map((path) => join(path, name))
        .filter(existsSync)
        .map((path) => realpathSync(path)),
    ),
  )
  const found = [...new Set(searched.filter(existsSync).map((path) => realpathSync(path)))].flatMap((path) =>
    names.flatMap((name) => {
      const at = join(path, name)
      const stat = lstatSync(at, { throwIfNoEntry: false })
      if (stat === undefined || uncovered.has(at) || !(stat.isFile() || stat.isSymbolicLink())) return []
      return [{ at, name, link: stat.isSymbolicLink() }]
    }),
  )
  if (found.length === 0) return { mounts: [], path: [] }
  const links = [...new Set(found.filter(({ link }) => link).map(({ name }) => name))]
  const linked = join(folder, 'forbidden.links')
  mkdirSync(linked, { recursive: true })
  const script = write(join(folder, 'forbidden'), refusal)
  for (const name of links) write(join(linked, name), refusal)
  const covers = found.filter(({ link }) => !link).flatMap(({ at }) => ['--ro-bind', script, at])
  return { mounts: [...covers, ...(links.length > 0 ? ['--ro-bind', linked, INSIDE] : [])], path: links.length > 0 ? [INSIDE] : [] }
}

const refusal = `#!/bin/sh
name=\${0##*/}
case $name in
${collections.join(' | ')}) echo "$name contains forbidden commands (security.forbidden_commands), so it does not run in the sandbox" >&2 ;;
rm) echo "rm is forbidden (security.forbidden_commands); nothing was run. Use the tool file_delete, with recursive for a folder" >&2 ;;
*) echo "$name is forbidden (security.forbidden_commands); nothing was run. Ask the operator if the work needs it" >&2 ;;
esac
exit 126
`

function write(path: string, text: string): string {
  writeFileSync(path, text, { mode: 0o755 })
  return path
}
