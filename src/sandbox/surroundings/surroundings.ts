/** Prepares what a command finds around its workspace: /etc, the user's tools, a home folder with caches, and refused programs. */

import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { forbiddenWithoutView } from '../../security/policy.ts'
import type { Environment, GitUser, SandboxSettings } from '../confinement.ts'
import { fixedPath } from '../install.ts'
import type { Places } from '../protect/places.ts'
import { cacheEnvironment, cacheMounts, commandHome, tidyCaches } from './command-home.ts'
import { prepareEtc } from './etc-folder.ts'
import { privateBelow } from './private-files.ts'
import { prepareRefusers } from './refusers.ts'
import { findToolchains } from './toolchains.ts'

export type Surroundings = {
  /** The folder that stands for /etc; undefined when none could be made, and the real one is shown. */
  readonly etc: string | undefined
  /** Mounts after the system folders and /tmp, before the workspace. */
  readonly mounts: readonly string[]
  /** More of them for a command that can write to the workspace itself. */
  readonly direct: readonly string[]
  /** Replaces HOME and PATH, and names the caches. */
  environment(given: Environment): Environment
  /** Removes caches that nobody uses, at most once a day. */
  tidy(): void
}

type Preparing = {
  readonly settings: SandboxSettings
  readonly places: Places
  /** Our private folder of this sandbox, and an unreadable file in it. */
  readonly folder: string
  readonly blank: string
  /** Who the command is inside. */
  readonly user: { readonly uid: number; readonly gid: number }
  cover(path: string): readonly string[]
}

/** Programs of the sandbox itself, when commands have a network. */
const networkTools = ['socat', 'perl', 'grep', 'sleep']

export function prepareSurroundings({ settings, places, folder, blank, cover, user }: Preparing): Surroundings {
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
    : prepareEtc({
        run: join(stateHome, 'run'),
        user: { ...user, name: nameOf(user.uid), home: commandHome },
        ...(gitUser ? { gitUser } : {}),
      })
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
function withoutUser(given: Environment, { name, email }: GitUser = {}): Environment {
  const known = { NAME: name, EMAIL: email }
  const isKnown = (key: string, value: string) =>
    Object.entries(known).some(([field, own]) => value === own && [`GIT_AUTHOR_${field}`, `GIT_COMMITTER_${field}`].includes(key))
  return Object.fromEntries(Object.entries(given).filter(([key, value]) => !isKnown(key, value)))
}

/** Without a network, package managers would try again for minutes. */
export const offline: Environment = { npm_config_fetch_retries: '0', PIP_RETRIES: '0', CARGO_NET_RETRY: '0' }

/** The runtime's own function takes the name from the environment. */
export function nameOf(uid: number): string {
  try {
    const line = readFileSync('/etc/passwd', 'utf8')
      .split('\n')
      .find((line) => line.split(':')[2] === String(uid))
    return line?.split(':')[0] || 'user'
  } catch {
    return 'user'
  }
}

/** @returns the private files of /opt, and of /etc where the sandbox shows the real one */
export function privateFiles(etc: string | undefined): readonly string[] {
  return [privateBelow('/opt', 2), ...(etc === undefined ? [privateBelow('/etc')] : [])].flatMap(({ files, folders }) => [
    ...folders,
    ...files,
  ])
}
