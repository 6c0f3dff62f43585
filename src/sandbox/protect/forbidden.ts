/** Guards forbidden paths inside the workspace: commands cannot read, list, replace or move them, nor create missing ones. */

import { existsSync, lstatSync } from 'node:fs'
import { dirname, relative } from 'node:path'
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
