/** Resolves the folder in which the tools work to its real path. */

import { existsSync, mkdirSync, realpathSync, statSync } from 'node:fs'
import type { Config } from '../../config/config.ts'
import { builtIn, isTooBroad } from '../../config/paths.ts'
import { errorCode, explainErrno } from '../../config/text/read-toml-file.ts'
import type { Setup } from '../api.ts'
import { FailureError } from '../failure.ts'
import { noteDaily } from './setup.ts'

/**
 * Returns the real path. Creates the default folder when the user has named none. @throws FailureError `error` when a named folder does not
 * exist.
 */
export function workspaceOf({ config: { workspaceDir }, origins }: Pick<Setup, 'config' | 'origins'>): string {
  const found = statSync(workspaceDir, { throwIfNoEntry: false })
  if (found?.isDirectory()) return realpathSync(workspaceDir)
  if (!found && origins.workspace_dir?.where === builtIn.where) return make(workspaceDir)
  const what = found ? 'is not a folder; name one' : 'does not exist; create it or run "braidclaw init"'
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

/** @throws FailureError `error` when the folder was removed after the start. */
export function assertWorkspaceExists({ workspaceDir }: Config): void {
  if (statSync(workspaceDir, { throwIfNoEntry: false })?.isDirectory()) return
  throw new FailureError('error', `the workspace "${workspaceDir}" is gone; create it again, or name another with --workspace`)
}

/** Tells a user in a folder that is too broad where the tools work instead. */
export function sayWhere(setup: Setup): void {
  const { config, origins, paths, context } = setup
  const { cwd, env } = context
  if (config.workspaceDir === cwd || !isTooBroad({ cwd, home: paths.home, userHome: env.HOME ?? '/' })) return
  if (origins.workspace_dir?.where !== builtIn.where) return
  noteDaily(
    setup,
    `the tools work in ${config.workspaceDir}, and not in all of ${cwd}; cd into a project, or name a folder with -C ("-C ." for this one)`,
  )
}

/** Returns the path itself while it does not exist. */
export function realFolder(path: string): string {
  return existsSync(path) ? realpathSync(path) : path
}

/** Returns the folders of skills, the strongest first. */
export function skillFolders({ paths, context: { env } }: Pick<Setup, 'paths' | 'context'>, workspace: string): readonly string[] {
  const folders = [`${workspace}/.agents/skills`, `${workspace}/.claude/skills`, `${env.HOME ?? paths.home}/.agents/skills`]
  return [...new Set([...folders, `${paths.home}/skills`])]
}
