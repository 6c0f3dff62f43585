/**
 * Guards forbidden paths inside the workspace: commands cannot read, list, replace or move them, nor create missing ones. Also finds the
 * files that commands may not read, by the patterns of the operator.
 */

import { existsSync, lstatSync, realpathSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { entriesIn } from '../../kit/proc.ts'
import { forbiddenReads, type ReadQuestion } from '../../security/targets/path.ts'
import { isWithin } from './places.ts'
import { type Guard, type Guards, rank, walk } from './protected-mounts.ts'

/**
 * Skips names whose folder is missing: a place holder would need that folder, and would prevent commands from creating it. The guard starts
 * once the folder exists.
 */
export function forbiddenIn(workspace: string, paths: readonly string[]): readonly string[] {
  const places = paths.filter((path) => path !== workspace && isWithin(path, workspace) && existsSync(dirname(path)))
  return [...new Set(places)].filter((path) => !places.some((other) => other !== path && isWithin(path, other)))
}

/** Every program needs some of these folders as a whole; forbidden paths below them can be covered. */
const needed = /^\/(usr|etc|opt|bin|sbin|lib\w*|nix|gnu|nix\/store|gnu\/store|usr\/[^/]+|usr\/local\/[^/]+)?$/

/** @returns the paths outside the workspace that may be covered */
export function forbiddenOutside(workspace: string, paths: readonly string[]): readonly string[] {
  return paths.filter((path) => !isWithin(path, workspace) && !isWithin(workspace, path) && !needed.test(path))
}

type Hiding = { readonly workspace: string; readonly guards: readonly Guard[]; readonly forbidden: readonly string[] }

/** Adds the forbidden paths to the guards. It drops guards inside a hidden folder, because no command can reach them. */
export function withForbidden({ workspace, guards, forbidden }: Hiding): Guards {
  const found = new Map(guards.map((guard) => [guard.path, guard]))
  for (const path of forbidden) {
    const link = walk({ workspace, path: relative(workspace, path), found, leaf: 'hide' })
    if (link !== undefined) return { ok: false, message: `${link} became a symbolic link while the command was prepared; try again` }
  }
  const hidden = [...found.values()].filter(({ type }) => type === 'hide')
  const reachable = [...found.values()].filter(({ path }) => !hidden.some((one) => one.path !== path && isWithin(path, one.path)))
  return { ok: true, guards: reachable.toSorted((a, b) => rank(a) - rank(b) || a.path.length - b.path.length) }
}

/**
 * Hides the forbidden paths that exist from a private view. It needs nothing else: a command can create or move names there, but only the
 * judgement of its changes lets them into the workspace.
 */
export function hiddenInView({ workspace, forbidden }: Omit<Hiding, 'guards'>): readonly Guard[] {
  return forbidden.flatMap((path) => {
    const stat = lstatSync(path, { throwIfNoEntry: false })
    const safe = stat !== undefined && !stat.isSymbolicLink() && isWithin(path, workspace)
    return safe ? [{ type: 'hide' as const, path, inode: stat.ino }] : []
  })
}

/** Looking through so many folders takes some 30 ms. */
const FOLDERS = 4_000
/** Each file costs a mount: a hundred take 10 ms. */
const MOST = 100
/** Packages and build results: their files come from others, or can be made again. */
const skipped = new Set(['node_modules', 'site-packages', '.git', 'target', '__pycache__'])

/** `folders`: how many it looked through. */
type Unread = { readonly files: readonly string[]; readonly complete: boolean; readonly folders: number }

/** Nearest to the root first. A link stands for the file that it leads to, if that lies in the workspace. */
export function findUnread(question: ReadQuestion): Unread {
  const { workspace, patterns } = question
  if (patterns.length === 0) return { files: [], complete: true, folders: 0 }
  const isUnread = forbiddenReads(question)
  const files: string[] = []
  const queue = [workspace]
  for (let at = 0; at < queue.length; at++) {
    const folder = queue[at] ?? workspace
    if (at >= FOLDERS) return { files: files.slice(0, MOST), complete: false, folders: at }
    for (const entry of entriesIn(folder)) {
      const path = join(folder, entry.name)
      if (entry.isDirectory() && !skipped.has(entry.name)) queue.push(path)
      else if (entry.isFile() && isUnread(path)) files.push(path)
      else if (entry.isSymbolicLink() && isUnread(path)) files.push(...linkTargetIn(path, workspace))
    }
  }
  return { files: [...new Set(files)].slice(0, MOST), complete: files.length <= MOST, folders: queue.length }
}

function linkTargetIn(link: string, workspace: string): string[] {
  const real = existsSync(link) ? realpathSync(link) : workspace
  return real !== workspace && isWithin(real, workspace) ? [real] : []
}
