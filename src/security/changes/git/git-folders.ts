/** Finds the repository folders that changes lie in, before or after the changes. */

import { type ChangeView, folderOf, inFolder, nameOf } from '../change-view.ts'
import type { Side } from '../review-context.ts'

export type GitFolders = {
  /** @returns the repository folders among this folder and those above it, outermost first */
  above(folder: string): readonly string[]
  /** Tells whether git could use the folder as it is on this side, or a linked worktree's share of it. */
  isComplete(folder: string, side: Side): boolean
  /** Tells whether git takes the folder for a repository when it comes across it. */
  isFound(folder: string, side: Side): boolean
}

export function createGitFolders(view: ChangeView): GitFolders {
  const known = new Map<string, readonly string[]>()

  function isComplete(folder: string, side: Side): boolean {
    return isFound(folder, side) || isCommon(folder, side)
  }

  function isFound(folder: string, side: Side): boolean {
    return isGitFolder((part) => view.kind(inFolder(folder, part), side) !== undefined)
  }

  /** A linked worktree's `commondir` leads here; git then needs no HEAD. */
  function isCommon(folder: string, side: Side): boolean {
    return ['worktrees', 'objects', 'refs'].every((name) => view.kind(inFolder(folder, name), side) !== undefined)
  }

  function above(folder: string): readonly string[] {
    const found = known.get(folder)
    if (found) return found
    const own = nameOf(folder) === '.git' || isComplete(folder, 'after') || isComplete(folder, 'before') ? [folder] : []
    const all = folder === '' ? own : [...above(folderOf(folder)), ...own]
    known.set(folder, all)
    return all
  }

  return { above, isComplete, isFound }
}

/** Names of git's own files in a repository. */
export const gitData =
  /^(?:[A-Z_]+|config(?:\.worktree)?|hooks|objects|refs|logs|index|packed-refs|shallow|description|info|rr-cache|rebase-merge|rebase-apply|sequencer|worktrees|modules)(?:\/|$)/

/** The names that make a folder a repository: HEAD, and either both `objects` and `refs` or a `commondir` that points to them. */
export const gitParts = ['HEAD', 'objects', 'refs', 'commondir'] as const

export type GitPart = (typeof gitParts)[number]

/**
 * Tells whether git takes a folder for a repository, whatever the folder is called. Only the names in it count, because a part that git
 * cannot use now can become usable, and a symbolic link may lead anywhere.
 */
export function isGitFolder(has: (name: GitPart) => boolean): boolean {
  return has('HEAD') && (has('commondir') || (has('objects') && has('refs')))
}
