/** Tells which paths of the workspace git ignores, by the rules that stand on the disk now: .gitignore, info/exclude and the user's own. */

import { lstatSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { isUnder } from '../../security/targets/path.ts'
import { pathsOfIndex } from '../changes/apply/git-index.ts'
import { ignored, parseIgnore } from '../walk/ignore.ts'
import { expand, readRepositorySettings, readSmall, readUserSettings, repositoriesAround } from './read-settings.ts'

type Around = { readonly workspace: string; readonly home: string; readonly env: { readonly [name: string]: string | undefined } }

type Ignored = 'folder' | 'name' | undefined

/**
 * Reads each file once. Nothing is ignored that the index holds, in a repository inside the workspace, and where the index cannot be read.
 * Paths are relative to the workspace.
 */
export function createIgnoredPaths({ workspace, home, env }: Around): (path: string, isFolder: boolean) => Ignored {
  const [repository] = repositoriesAround(workspace)
  if (repository === undefined) return () => undefined
  const { root, git, common } = repository
  const settings = [...readUserSettings({ home, configHome: env.XDG_CONFIG_HOME }), ...readRepositorySettings(repository, home)]
  const own = settings.findLast(({ key }) => key === 'core.excludesfile')?.value
  const users = own === undefined ? join(env.XDG_CONFIG_HOME ?? join(home, '.config'), 'git/ignore') : expand(own, root, home)
  const outer = memo(() => [join(common, 'info/exclude'), users].map((file) => parseIgnore(withoutAll(readSmall(file) ?? ''))))
  const rules = memo((folder) => {
    const file = join(root, folder, '.gitignore')
    const text = lstatSync(file, { throwIfNoEntry: false })?.isFile() ? (readSmall(file) ?? '') : ''
    return parseIgnore(isUnder(workspace, join(root, folder)) ? withoutAll(text) : text)
  })
  const isRepository = memo((folder) => lstatSync(join(root, folder, '.git'), { throwIfNoEntry: false }) !== undefined)
  const tracked = memo(() => trackedIn(git))

  /** The rules of the nearest folder decide first. */
  function isIgnored(path: string, isFolder: boolean): boolean {
    for (let folder = above(path); ; folder = above(folder)) {
      const found = ignored(rules(folder), folder === '' ? path : path.slice(folder.length + 1), isFolder)
      if (found !== undefined) return found
      if (folder === '') break
    }
    const verdicts = outer('').map((each) => ignored(each, path, isFolder))
    return verdicts.find((found) => found !== undefined) ?? false
  }

  /** What lies in an ignored folder is ignored, whatever later rules say. */
  const folderIgnored: (folder: string) => boolean = memo(
    (folder) => folder !== '' && (folderIgnored(above(folder)) || isIgnored(folder, true)),
  )

  return (given, isFolder) => {
    if (folderIgnored(relative(root, workspace))) return
    const path = relative(root, join(workspace, given))
    for (let folder = isFolder ? path : above(path); folder !== ''; folder = above(folder)) if (isRepository(folder)) return
    const by = folderIgnored(above(path)) ? 'folder' : isIgnored(path, isFolder) ? 'name' : undefined
    return by !== undefined && (isFolder || tracked('')?.has(path) === false) ? by : undefined
  }
}

/** A rule for everything, of a home folder or a list of exceptions, does not say what is output. */
function withoutAll(text: string): string {
  return text.replace(/^[*/]+\s*$/gm, '')
}

/** @returns undefined for an index that cannot be read whole */
function trackedIn(git: string): ReadonlySet<string> | undefined {
  try {
    const file = join(git, 'index')
    return lstatSync(file, { throwIfNoEntry: false }) === undefined ? new Set() : pathsOfIndex(readFileSync(file))
  } catch {
    return undefined
  }
}

function memo<T>(make: (key: string) => T): (key: string) => T {
  const made = new Map<string, { readonly value: T }>()
  return (key) => {
    const found = made.get(key) ?? { value: make(key) }
    made.set(key, found)
    return found.value
  }
}

function above(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/')))
}
