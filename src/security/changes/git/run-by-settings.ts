/** Finds the files and folders of the workspace that the settings of the repositories around and beside a folder make git run or read. */

import type { PathPolicy } from '../../targets/path.ts'
import { type ChangeView, folderOf, inFolder, isBelow } from '../change-view.ts'
import { resolveText } from '../resolve-link.ts'
import { mostSettingsBytes, namedBySettings, readSettings } from './git-settings.ts'
import { isGitFolder } from './git-shape.ts'

/** `run` are hook folders and programs, `settings` are included files; all are relative to the workspace. */
type Named = { readonly run: readonly string[]; readonly settings: readonly string[] }

/** Limits how many names beside a changed path are tried, because each costs a look at the disk. */
const besideTried = 200

/** The settings that hold are those before the changes: new ones that name programs are refused. */
export function createRunBySettings(view: ChangeView, policy: Pick<PathPolicy, 'workspace' | 'home'>): (folder: string) => Named {
  const known = new Map<string, Named>()

  function above(folder: string): Named {
    const found = known.get(folder)
    if (found) return found
    const more = folder === '' ? [] : [above(folderOf(folder))]
    const all = together([...more, namedIn(folder), ...beside(folder)].filter((each) => each !== undefined))
    known.set(folder, all)
    return all
  }

  /** A repository in a folder beside the changed path may name what lies outside of it: `../hooks`. */
  function beside(folder: string): readonly Named[] {
    const names = view.names(folder, 'before')?.slice(0, besideTried) ?? []
    return names.flatMap((name) => {
      const path = inFolder(folder, name)
      const own = name === '.git' ? undefined : namedIn(path)
      const isOutside = (each: string) => !isBelow(each, path)
      return own ? [{ run: own.run.filter(isOutside), settings: own.settings.filter(isOutside) }] : []
    })
  }

  function resolve(target: string, folder: string): string | undefined {
    const text = target.startsWith('~/') ? `${policy.home}${target.slice(1)}` : target
    return resolveText({ view, policy, side: 'before', folder, target: text })?.inside
  }

  function namedIn(folder: string): Named | undefined {
    const git = gitFolderOf(folder)
    if (git === undefined) return
    const common = view.text(inFolder(git, 'commondir'), 'before', 4_096)
    const shared = common === undefined ? undefined : resolve(common.trim(), git)
    const files = [git, ...(shared === undefined ? [] : [shared])].flatMap((each) => [
      inFolder(each, 'config'),
      inFolder(each, 'config.worktree'),
    ])
    const read = readSettings(files, {
      read: (path) => view.text(path, 'before', mostSettingsBytes),
      resolve: (path, from) => resolve(path, folderOf(from)),
    })
    const run = read.flatMap(({ entries }) => namedBySettings(entries).run.flatMap((each) => resolve(each, folder) || []))
    return { run, settings: read.map(({ path }) => path).filter((path) => !files.includes(path)) }
  }

  function gitFolderOf(folder: string): string | undefined {
    const path = inFolder(folder, '.git')
    const kind = view.kind(path, 'before')
    if (kind === 'folder') return path
    if (kind !== undefined) return kind === 'file' ? gitFile(folder, path) : undefined
    return isGitFolder((part) => view.kind(inFolder(folder, part), 'before') !== undefined) ? folder : undefined
  }

  function gitFile(folder: string, path: string): string | undefined {
    const target = /^gitdir: ([^\n]+?)\s*$/.exec(view.text(path, 'before', 8_192) ?? '')?.[1]
    return target === undefined ? undefined : resolve(target, folder)
  }

  return above
}

function together(all: readonly Named[]): Named {
  return { run: all.flatMap(({ run }) => run), settings: all.flatMap(({ settings }) => settings) }
}
