/** What inside the workspace stays as it is, whether it exists yet or not, and the mounts that hold it. */

import { lstatSync, type Stats } from 'node:fs'
import { isAbsolute, join, relative, sep } from 'node:path'
import { isStub } from './stubs.ts'

/** Files and folders that other programs run or obey when they find them in a folder. */
const names = [
  '.gitmodules',
  '.mcp.json',
  '.braidclaw',
  '.vscode',
  '.idea',
  '.bashrc',
  '.bash_profile',
  '.bash_login',
  '.bash_logout',
  '.profile',
  '.zshrc',
  '.zshenv',
  '.zprofile',
  '.zlogin',
  '.envrc',
] as const

/** `commondir` would send git to another config and other hooks. */
const gitNames = ['hooks', 'config', 'config.worktree', 'commondir', 'modules'] as const

/**
 * pin: stays writable but cannot be renamed away, nor replaced; keep: read-only;
 * hide: reads as empty, or not at all; absent: a place holder stands there while commands run, and a mount on it.
 */
export type Guard = {
  readonly type: 'pin' | 'keep' | 'hide' | 'absent'
  readonly path: string
  /** Of what is there: a file that an editor replaces has another. */
  readonly inode?: number
}

export type Guards = { readonly ok: true; readonly guards: readonly Guard[] } | { readonly ok: false; readonly message: string }

export type Guarded = {
  readonly workspace: string
  /** Absolute or relative to the workspace. What lies outside is read-only or hidden anyway. */
  readonly extra: readonly string[]
  /** Folders with a `.git`, relative to the workspace, '' for itself. */
  readonly repositories: readonly string[]
}

/** Paths relative to the workspace, each once. */
export function protectedIn({ workspace, extra, repositories }: Guarded): string[] {
  const own = extra.map((path) => (isAbsolute(path) ? relative(workspace, path) : join(path)))
  const git = repositories.flatMap((folder) => gitNames.map((name) => join(folder, '.git', name)))
  return [...new Set([...names, ...git, ...own])].filter(
    (path) => path !== '' && path !== '.' && path !== '..' && !path.startsWith(`..${sep}`),
  )
}

/** A mount follows a symbolic link and leaves the link itself replaceable, so a link among the names refuses the command. */
export function guardsFor(guarded: Guarded): Guards {
  const found = new Map<string, Guard>()
  for (const path of protectedIn(guarded)) {
    const link = walk({ workspace: guarded.workspace, path, found })
    if (link !== undefined) return { ok: false, message: linkMessage(link) }
  }
  return { ok: true, guards: [...found.values()].toSorted((a, b) => rank(a) - rank(b) || a.path.length - b.path.length) }
}

/** Pins first: a bind over a folder would cover the mounts inside of it. */
export function rank({ type }: Guard): number {
  return type === 'pin' ? 0 : 1
}

type Walk = { workspace: string; path: string; found: Map<string, Guard>; leaf?: 'keep' | 'hide' }

/** @returns the path of a symbolic link on the way. */
export function walk({ workspace, path, found, leaf = 'keep' }: Walk): string | undefined {
  const parts = path.split(sep).filter(Boolean)
  for (let length = 1; length <= parts.length; length++) {
    const at = join(workspace, ...parts.slice(0, length))
    const stat = look(at)
    if (stat?.isSymbolicLink()) return at
    const type = stat === undefined ? 'absent' : length === parts.length ? leaf : stat.isDirectory() ? 'pin' : 'keep'
    const known = found.get(at)?.type
    if (known !== 'hide' && (known !== 'keep' || type === 'hide')) found.set(at, { type, path: at, inode: stat?.ino })
    if (type !== 'pin') return undefined
  }
}

/** A place holder, of another command or left by a crash, counts as nothing. */
function look(path: string): Stats | undefined {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  return stat === undefined || isStub(path) ? undefined : stat
}

function linkMessage(path: string): string {
  return `${path}: this protected name is a symbolic link, which cannot be protected; replace it by a real file or folder, then try again`
}
