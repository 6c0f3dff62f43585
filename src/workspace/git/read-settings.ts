/** Reads the settings and references of the repositories around a folder, and the user's own settings, without running git. */

import { closeSync, fstatSync, lstatSync, openSync, readSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { atEnd, attempt } from '../../kit/errors.ts'
import { entriesIn, namesIn } from '../../kit/proc.ts'
import {
  type ConfigEntry,
  mostSettingsBytes,
  namedBySettings,
  readSettings,
  type SettingsFile,
} from '../../security/changes/git/git-config.ts'
import { isGitFolder } from '../../security/changes/git/git-folders.ts'
import { flags } from '../descriptor.ts'

/** All paths are absolute. `common` is another folder than `git` only for a linked worktree. */
export type Repository = { readonly root: string; readonly git: string; readonly common: string }

/** @returns the repositories that the folder lies in, nearest first, up to `top` */
export function repositoriesAround(folder: string, top = '/'): readonly Repository[] {
  const found: Repository[] = []
  for (let root = folder; ; root = dirname(root)) {
    const git = gitFolderOf(root)
    if (git !== undefined) found.push({ root, git, common: commonOf(git) })
    if (root === top || root === '/') return found
  }
}

/** Follows the file that a linked worktree or a submodule has in the place of its repository. */
function gitFolderOf(root: string): string | undefined {
  const path = join(root, '.git')
  const stat = lstatAt(path)
  if (stat?.isDirectory()) return path
  if (stat === undefined) return isGitFolder((part) => lstatAt(join(root, part)) !== undefined) ? root : undefined
  const target = /^gitdir: ([^\n]+?)\s*$/.exec(readSmall(path) ?? '')?.[1]
  return target === undefined ? undefined : resolve(root, target)
}

function commonOf(git: string): string {
  const text = readSmall(join(git, 'commondir'))?.trim()
  return text ? resolve(git, text) : git
}

export function readRepositorySettings({ git, common }: Repository, home: string): readonly ConfigEntry[] {
  return readFiles([join(common, 'config'), join(git, 'config.worktree')], home).flatMap(({ entries }) => entries)
}

/** Limits how many names in a folder are tried, because each costs a look at the disk. */
const besideTried = 200

/** @returns the repositories in the folders directly below `folder`, and below those above it up to `top` */
function repositoriesBeside(folder: string, top: string): readonly Repository[] {
  const found: Repository[] = []
  for (let above = folder; ; above = dirname(above)) {
    for (const name of namesIn(above).slice(0, besideTried)) {
      const git = name === '.git' ? undefined : gitFolderOf(join(above, name))
      if (git !== undefined) found.push({ root: join(above, name), git, common: commonOf(git) })
    }
    if (above === top || above === '/') return found
  }
}

/** The programs that git's settings make it run, and the files of settings that they include. */
export type NamedPaths = { readonly run: readonly string[]; readonly included: readonly string[] }

/** @param top the repositories in folders beside the folder and beside those above it count up to here; absent: those around it alone */
export function namedAround(folder: string, { top, home }: { readonly top?: string; readonly home: string }): NamedPaths {
  const beside = top === undefined ? [] : repositoriesBeside(folder, top)
  const all = [...repositoriesAround(folder), ...beside].map(({ root, git, common }) => {
    const own = [join(git, 'config'), join(git, 'config.worktree'), join(common, 'config')]
    return namedIn(readFiles(own, home), { own, root, home })
  })
  return { run: all.flatMap(({ run }) => run), included: all.flatMap(({ included }) => included) }
}

function namedIn(files: readonly SettingsFile[], { own, root, home }: { own: readonly string[]; root: string; home: string }): NamedPaths {
  return {
    run: files.flatMap(({ entries }) => namedBySettings(entries).run.map((path) => expand(path, root, home))),
    included: files.map(({ path }) => path).filter((path) => !own.includes(path)),
  }
}

/** `env` is the user's environment. */
export type GitUserContext = { readonly home: string; readonly env: { readonly [name: string]: string | undefined } }

/** Returns the settings of the user and of the machine; later entries override earlier ones. */
export function readUserSettings({ home, env }: GitUserContext): readonly ConfigEntry[] {
  const own = env.GIT_CONFIG_GLOBAL
  const files = own === undefined ? [join(configFolder({ home, env }), 'config'), join(home, '.gitconfig')] : [own]
  return readFiles(['/etc/gitconfig', ...files], home).flatMap(({ entries }) => entries)
}

function configFolder({ home, env }: GitUserContext): string {
  return join(env.XDG_CONFIG_HOME || join(home, '.config'), 'git')
}

type UserFile = 'ignore' | 'attributes'

/** @returns where the user's own file of this kind is, by these settings or else in its usual place */
export function userFile(kind: UserFile, settings: readonly ConfigEntry[], at: GitUserContext & { readonly from: string }): string {
  const own = settings.findLast(({ key }) => key === `core.${kind === 'ignore' ? 'excludes' : kind}file`)?.value
  return own === undefined ? join(configFolder(at), kind) : expand(own, at.from, at.home)
}

function readFiles(files: readonly string[], home: string): readonly SettingsFile[] {
  return readSettings(files, { read: readSmall, resolve: (path, from) => expand(path, dirname(from), home) })
}

export function expand(path: string, from: string, home: string): string {
  return path.startsWith('~/') ? join(home, path.slice(2)) : resolve(from, path)
}

export function lstatAt(path: string) {
  return attempt(() => lstatSync(path, { throwIfNoEntry: false }))
}

/** @returns undefined for what is missing, no regular file, too large or unreadable */
export function readSmall(path: string, most = mostSettingsBytes): string | undefined {
  return attempt(() => {
    const fd = openSync(path, flags.read)
    using _end = atEnd(() => closeSync(fd))
    const { size } = fstatSync(fd)
    if (!fstatSync(fd).isFile() || size > most) return
    const bytes = Buffer.alloc(size)
    return bytes.toString('utf8', 0, readSync(fd, bytes, 0, size, 0))
  })
}

const mostPackedBytes = 64 * 1024 * 1024
const mostFiles = 100_000

/**
 * Reads the references of a repository from its files: object ids by full name; symbolic references are left out. @param common the folder
 * that holds `refs` and `packed-refs`
 */
export function readRefs(common: string): ReadonlyMap<string, string> {
  const refs = new Map<string, string>()
  for (const line of (readSmall(join(common, 'packed-refs'), mostPackedBytes) ?? '').split('\n')) {
    const [, id, name] = /^([\da-f]{40}|[\da-f]{64}) (refs\/\S+)$/.exec(line) ?? []
    if (id !== undefined && name !== undefined) refs.set(name, id)
  }
  for (const name of filesBelow(common)) {
    const id = idIn(readSmall(join(common, name)))
    if (id !== undefined) refs.set(name, id)
  }
  return refs
}

export type Head = { readonly branch?: string; readonly id?: string }

/** @param git the folder that holds HEAD */
export function readHead(git: string, refs: ReadonlyMap<string, string>): Head {
  const text = readSmall(join(git, 'HEAD'))
  const branch = /^ref: refs\/heads\/(\S+)\s*$/.exec(text ?? '')?.[1]
  const id = branch === undefined ? idIn(text) : refs.get(`refs/heads/${branch}`)
  return { branch, id }
}

function idIn(text: string | undefined): string | undefined {
  return /^([\da-f]{40}|[\da-f]{64})\s*$/.exec(text ?? '')?.[1]
}

/** Names that a line of packed-refs could not hold are left out, and so are links. */
function filesBelow(common: string): readonly string[] {
  const found: string[] = []
  const folders = ['refs']
  for (const folder of folders) {
    if (found.length + folders.length > mostFiles) break
    for (const entry of entriesIn(join(common, folder))) {
      const name = `${folder}/${entry.name}`
      if (/[\s\p{Cc}\ufffd]/u.test(entry.name)) continue
      if (entry.isDirectory()) folders.push(name)
      else if (entry.isFile() && !name.endsWith('.lock')) found.push(name)
    }
  }
  return found
}
