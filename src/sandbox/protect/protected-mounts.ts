/** Finds the protected names in the workspace, and computes the mounts that keep them unchanged, whether they exist yet or not. */

import { type Dirent, existsSync, lstatSync, realpathSync, type Stats, statSync } from 'node:fs'
import { dirname, isAbsolute, join, relative, sep } from 'node:path'
import { entriesIn } from '../../kit/proc.ts'
import { protectedRows, spelt, watchedNames } from '../../security/targets/protected.ts'
import { isStub } from './placeholders.ts'
import { isWithin } from './places.ts'

/** `commondir` would send git to another config and other hooks. */
const gitNames = ['hooks', 'config', 'config.worktree', 'commondir', 'modules'] as const

/** Limits the number of mounts: a hundred cost some 30 ms, a thousand cost seconds. */
export const MOST = 100

/**
 * pin: stays writable but cannot be renamed or replaced; keep: read-only;
 * hide: appears empty, or cannot be read; absent: a place holder with a mount on it exists while commands run.
 */
export type Guard = {
  readonly type: 'pin' | 'keep' | 'hide' | 'absent'
  readonly path: string
  /** Inode of the existing file: it changes when an editor replaces the file. */
  readonly inode?: number
}

export type Guards = { readonly ok: true; readonly guards: readonly Guard[] } | { readonly ok: false; readonly message: string }

type GuardOptions = {
  readonly workspace: string
  /** Absolute or relative to the workspace. Paths outside the workspace are read-only or hidden anyway. */
  readonly extra: readonly string[]
  /** Folders with a `.git`, relative to the workspace; '' for the workspace itself. */
  readonly repositories: readonly string[]
  /** Existing protected names, relative to the workspace, nearest to the root first. */
  readonly names?: readonly string[]
}

/** @returns the names that are guarded even before they exist, relative to the workspace, without duplicates */
export function protectedIn({ workspace, extra, repositories }: GuardOptions): string[] {
  const watched = watchedNames.filter((name) => name !== '.git')
  const own = extra.map((path) => (isAbsolute(path) ? relative(workspace, path) : join(path)))
  const git = repositories.flatMap((folder) => gitNames.map((name) => join(folder, '.git', name)))
  return [...new Set([...watched, ...git, ...own])].filter(
    (path) => path !== '' && path !== '.' && path !== '..' && !path.startsWith(`..${sep}`),
  )
}

/** A mount follows a symbolic link and leaves the link itself replaceable, so a link among the names refuses the command. */
export function guardsFor(guarded: GuardOptions): Guards {
  const found = new Map<string, Guard>()
  for (const path of protectedIn(guarded)) {
    const link = walk({ workspace: guarded.workspace, path, found })
    if (link !== undefined) return { ok: false, message: linkMessage(link) }
  }
  for (const path of (guarded.names ?? []).slice(0, MOST)) keep({ workspace: guarded.workspace, path, found })
  return { ok: true, guards: [...found.values()].toSorted((a, b) => rank(a) - rank(b) || a.path.length - b.path.length) }
}

type NameToKeep = { readonly workspace: string; readonly path: string; readonly found: Map<string, Guard> }

/**
 * Guards existing names. Folders on the way are pinned when the name starts in the workspace folder; deeper ones are not, because moving a
 * file out of a pinned folder would copy it. A link itself is not guarded (who looks over the workspace afterwards puts links back), but its
 * target is.
 */
function keep({ workspace, path, found }: NameToKeep): void {
  const at = join(workspace, path)
  const stat = lstatSync(at, { throwIfNoEntry: false })
  if (stat === undefined || found.has(at) || isStub(at) || realpathSync(dirname(at)) !== dirname(at)) return
  const [first = '', ...rest] = path.split(sep)
  if (stat.isSymbolicLink()) keepTarget({ workspace, path: at, found })
  else found.set(at, { type: 'keep', path: at, inode: stat.ino })
  if (protectedRows(first).length > 0) pinAbove({ workspace, parts: [first, ...rest], found })
}

function pinAbove({ workspace, parts, found }: Omit<NameToKeep, 'path'> & { readonly parts: readonly string[] }): void {
  for (let length = 1; length < parts.length; length++) {
    const at = join(workspace, ...parts.slice(0, length))
    if (!found.has(at)) found.set(at, { type: 'pin', path: at, inode: lstatSync(at).ino })
  }
}

function keepTarget({ workspace, path, found }: NameToKeep): void {
  const target = existsSync(path) ? realpathSync(path) : workspace
  if (target !== workspace && isWithin(target, workspace) && !found.has(target))
    found.set(target, { type: 'keep', path: target, inode: statSync(target).ino })
}

/** Pins come first: a bind mount over a folder would cover the mounts inside it. */
export function rank({ type }: Guard): number {
  return type === 'pin' ? 0 : 1
}

type GuardWalk = { workspace: string; path: string; found: Map<string, Guard>; leaf?: 'keep' | 'hide' }

/** @returns the path of a symbolic link on the way */
export function walk({ workspace, path, found, leaf = 'keep' }: GuardWalk): string | undefined {
  const parts = path.split(sep).filter(Boolean)
  for (let length = 1; length <= parts.length; length++) {
    const at = join(workspace, ...parts.slice(0, length))
    const stat = statUnlessStub(at)
    if (stat?.isSymbolicLink()) return at
    const type = stat === undefined ? 'absent' : length === parts.length ? leaf : stat.isDirectory() ? 'pin' : 'keep'
    const known = found.get(at)?.type
    if (known !== 'hide' && (known !== 'keep' || type === 'hide')) found.set(at, { type, path: at, inode: stat?.ino })
    if (type !== 'pin') return undefined
  }
}

/** Treats a place holder, from another command or left by a crash, as a missing file. */
function statUnlessStub(path: string): Stats | undefined {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  return stat === undefined || isStub(path) ? undefined : stat
}

function linkMessage(path: string): string {
  return `${path}: this protected name is a symbolic link, which cannot be protected; replace it by a real file or folder, then try again`
}

/** Limits of the search for names. */
const DEPTH = 3
const FOLDERS = 2_000

/** All paths are relative to `workspace`. */
export type Discovered = {
  /** Folders with a `.git`; always includes '' (the workspace itself). */
  readonly repositories: readonly string[]
  /** Existing protected names, nearest to the root first, without `.git`. */
  readonly names: readonly string[]
  /** False when the search reached its limit. */
  readonly complete: boolean
}

/** Finds the git repositories and protected names (security/targets/protected.ts) that the sandbox must guard in a workspace. */
export function discover(workspace: string): Discovered {
  const repositories = new Set([''])
  const names: string[] = []
  let level = ['']
  let seen = 0
  for (let depth = 0; depth <= DEPTH && level.length > 0; depth++) {
    const next: string[] = []
    for (const folder of level) {
      if (++seen > FOLDERS) return { repositories: [...repositories], names, complete: false }
      const entries = entriesIn(join(workspace, folder))
      names.push(...namesAmong(entries, workspace, folder))
      for (const entry of entries) {
        if (entry.name === '.git') repositories.add(folder)
        else if (entry.isDirectory() && entry.name !== 'node_modules' && !entry.name.startsWith('.')) next.push(join(folder, entry.name))
      }
    }
    level = next
  }
  return { repositories: [...repositories], names, complete: true }
}

/** Searches the workspace folder only, not the folders below it; excludes `.git`. */
export function rootNames(workspace: string): string[] {
  return namesAmong(entriesIn(workspace), workspace, '')
}

function namesAmong(entries: readonly Dirent[], workspace: string, folder: string): string[] {
  return entries
    .filter(({ name }) => name !== '.git')
    .flatMap((entry) => {
      const rests = protectedRows(entry.name).map(([, ...rest]) => rest)
      const path = join(folder, entry.name)
      return rests.some((rest) => rest.length === 0) ? [path] : rests.flatMap((rest) => following({ workspace, path, entry, rest }))
    })
}

type RowSearch = { readonly workspace: string; readonly path: string; readonly entry: Dirent; readonly rest: readonly string[] }

/**
 * Finds the rest of a protected row below `path`, in any spelling. A symbolic link in the middle stands for everything that it leads to.
 */
function following({ workspace, path, entry, rest: [name, ...rest] }: RowSearch): string[] {
  if (name === undefined) return [path]
  const at = join(workspace, path)
  if (entry.isSymbolicLink()) return existsSync(join(at, name, ...rest)) ? [path] : []
  return entriesIn(at)
    .filter((entry) => spelt(entry.name) === name)
    .flatMap((entry) => following({ workspace, path: join(path, entry.name), entry, rest }))
}
