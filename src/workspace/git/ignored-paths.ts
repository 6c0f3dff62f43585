/** Tells which paths of the workspace git ignores, by the rules that stand on the disk now: .gitignore, info/exclude and the user's own. */

import { readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { attempt } from '../../kit/errors.ts'
import { memo } from '../../kit/lazy.ts'
import { isUnder } from '../../security/targets/path.ts'
import { pathsOfIndex } from '../changes/apply/git-index.ts'
import { isIgnored, parseIgnore, type Rules } from '../walk.ts'
import {
  type GitUserContext,
  lstatAt,
  readRepositorySettings,
  readSmall,
  readUserSettings,
  repositoriesAround,
  userFile,
} from './read-settings.ts'

export type GitContext = GitUserContext & { readonly workspace: string }

type Ignored = 'folder' | 'name' | undefined

/**
 * Reads each file once. Nothing is ignored that the index holds, in a repository inside the workspace, and where the index cannot be read.
 * Paths are relative to the workspace; nothing outside of it is ignored.
 */
export function createIgnoredPaths({ workspace, home, env }: GitContext): (path: string, isFolder: boolean) => Ignored {
  const [repository] = repositoriesAround(workspace)
  if (repository === undefined) return () => undefined
  const { root, git, common } = repository
  const settings = [...readUserSettings({ home, env }), ...readRepositorySettings(repository, home)]
  const users = userFile('ignore', settings, { home, env, from: root })
  const rulesIn = (from: string, file: string) => ({ from, rules: parseIgnore(rulesOfFile(file, isUnder(workspace, join(root, from)))) })
  /** The user's own rules come first, because those of the nearest folder decide. */
  const rulesAbove: (folder: string) => readonly Rules[] = memo((folder) => {
    const outer = folder === '' ? [rulesIn('', users), rulesIn('', join(common, 'info/exclude'))] : rulesAbove(above(folder))
    const file = join(root, folder, '.gitignore')
    return lstatAt(file)?.isFile() ? [...outer, rulesIn(folder, file)] : outer
  })
  const isRepository = memo((folder) => lstatAt(join(root, folder, '.git')) !== undefined)
  const tracked = memo(() => trackedIn(git))
  /** A path in an ignored folder is ignored, whatever later rules say. */
  const folderIgnored: (folder: string) => boolean = memo(
    (folder) => folder !== '' && (folderIgnored(above(folder)) || isIgnored(rulesAbove(above(folder)), folder, true)),
  )

  return (given, isFolder) => {
    if (given.startsWith('/') || folderIgnored(relative(root, workspace))) return
    const path = relative(root, join(workspace, given))
    for (let folder = isFolder ? path : above(path); folder !== ''; folder = above(folder)) if (isRepository(folder)) return
    const by = folderIgnored(above(path)) ? 'folder' : isIgnored(rulesAbove(above(path)), path, isFolder) ? 'name' : undefined
    return by !== undefined && (isFolder || tracked('')?.has(path) === false) ? by : undefined
  }
}

/** A rule for everything, of a home folder or before a list of exceptions, does not say what is output. */
function rulesOfFile(file: string, isAroundWorkspace: boolean): string {
  const text = readSmall(file) ?? ''
  return isAroundWorkspace ? text.replace(/^[*/]+\s*$/gm, '') : text
}

/** @returns undefined for an index that cannot be read whole */
function trackedIn(git: string): ReadonlySet<string> | undefined {
  return attempt(() => {
    const file = join(git, 'index')
    return lstatAt(file) === undefined ? new Set() : pathsOfIndex(readFileSync(file))
  })
}

function above(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/')))
}
