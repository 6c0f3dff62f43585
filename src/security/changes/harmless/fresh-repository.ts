/** Recognises the repository that a plain `git init FOLDER` makes in a folder that was not there before. */

import type { CommandPlan } from '../../command/verdict.ts'
import { type ChangeView, folderOf } from '../change-view.ts'
import { plainGit } from '../git/plain-git.ts'

/**
 * @returns whether a path is in such a repository. What asks there are git's own first settings, which run no program and send nothing
 * elsewhere; what runs programs is refused before, and a new executable still asks.
 */
export function freshRepository(view: ChangeView, command: CommandPlan | undefined): (path: string) => boolean {
  if (
    plainGit(command) !== 'init' ||
    command?.kind !== 'argv' ||
    !/^init(?: (?:-q|--quiet|-b \S+|--initial-branch=\S+))* [^-]\S*$/.test(command.argv.slice(1).join(' '))
  )
    return () => false
  return (path) => {
    const git = /^(?:.*\/)?\.git(?=\/|$)/.exec(path)?.[0] ?? ''
    const folder = folderOf(git)
    return folder !== '' && view.kind(folder, 'before') === undefined
  }
}
