/** Where the tools work, as the file system names it. */

import { existsSync, realpathSync, statSync } from 'node:fs'
import type { Config } from '../../config/config.ts'
import { CliExit, exitCodes } from '../exit.ts'

/** @throws CliExit 1 when it is not there. */
export function workspaceOf({ workspaceDir }: Config): string {
  const found = statSync(workspaceDir, { throwIfNoEntry: false })
  if (found?.isDirectory()) return realpathSync(workspaceDir)
  const what = found ? 'is no folder; name one' : 'does not exist; create it or run "braidclaw init"'
  throw new CliExit(exitCodes.error, `error: workspace_dir: "${workspaceDir}" ${what}`)
}

/** @throws CliExit 1 when somebody took away what was there at the start. */
export function mindWorkspace({ workspaceDir }: Config): void {
  if (statSync(workspaceDir, { throwIfNoEntry: false })?.isDirectory()) return
  throw new CliExit(exitCodes.error, `error: the workspace "${workspaceDir}" is gone; create it again, or name another with --workspace`)
}

/** The path itself while nothing is there. */
export function realFolder(path: string): string {
  return existsSync(path) ? realpathSync(path) : path
}
