/** Where the tools work, as the file system names it. */

import { existsSync, mkdirSync, realpathSync, statSync } from 'node:fs'
import type { Config } from '../../config/config.ts'
import { errorCode, explainErrno } from '../../config/text/read-toml-file.ts'
import { builtIn, holdsTooMuch } from '../../config/workspace.ts'
import type { Setup } from '../api.ts'
import { FailureError } from '../failure.ts'

/** Real path. The one that is used when nobody named any is made. @throws FailureError error when another is not there. */
export function workspaceOf({ config: { workspaceDir }, origins }: Pick<Setup, 'config' | 'origins'>): string {
  const found = statSync(workspaceDir, { throwIfNoEntry: false })
  if (found?.isDirectory()) return realpathSync(workspaceDir)
  if (!found && origins.workspace_dir?.where === builtIn.where) return make(workspaceDir)
  const what = found ? 'is no folder; name one' : 'does not exist; create it or run "braidclaw init"'
  throw new FailureError('error', `workspace_dir: "${workspaceDir}" ${what}`)
}

function make(folder: string): string {
  try {
    mkdirSync(folder, { mode: 0o755 })
    return realpathSync(folder)
  } catch (error) {
    throw new FailureError('error', `the workspace "${folder}" cannot be made: ${explainErrno(errorCode(error))}`)
  }
}

/** @throws FailureError error when somebody took away what was there at the start. */
export function assertWorkspaceExists({ workspaceDir }: Config): void {
  if (statSync(workspaceDir, { throwIfNoEntry: false })?.isDirectory()) return
  throw new FailureError('error', `the workspace "${workspaceDir}" is gone; create it again, or name another with --workspace`)
}

/** Who stands in a folder that holds too much learns where the tools work instead. */
export function sayWhere({ config, origins, paths, context: { cwd, env, say } }: Setup): void {
  if (config.workspaceDir === cwd || !holdsTooMuch({ cwd, home: paths.home, userHome: env.HOME ?? '/' })) return
  if (origins.workspace_dir?.where !== builtIn.where) return
  say(
    `note: the tools work in ${config.workspaceDir}, and not in all of ${cwd}; cd into a project, or name a folder with -C ("-C ." for this one)\n`,
  )
}

/** The path itself while nothing is there. */
export function realFolder(path: string): string {
  return existsSync(path) ? realpathSync(path) : path
}
