/** The operator's rules that hold in a workspace, or those of one file; with a rule that is not understood no command goes on. */

import { createTrust } from '../../config/trust.ts'
import { CliExit, exitCodes } from '../exit.ts'
import type { Setup } from '../world.ts'
import { type LoadedRules, loadRules, readRules } from './rules-files.ts'

/** What a run in this workspace obeys. @throws CliExit 2 naming every problem. */
export function rulesInForce({ config, paths, context, log }: Setup): LoadedRules {
  const workspace = config.workspaceDir
  const trusted = createTrust(paths.trustedFolders).isTrusted(workspace)
  const loaded = loadRules({ home: paths.home, userHome: context.env.HOME || '/', workspace, trusted })
  for (const notice of loaded.notices) log('warn', notice)
  return understood(loaded)
}

/** `file` may be relative to where the command runs. @throws CliExit 2 naming every problem. */
export function rulesOfFile({ config, context }: Setup, file: string) {
  const path = file.startsWith('/') ? file : `${context.cwd}/${file}`
  return understood(readRules(path, { workspace: config.workspaceDir, home: context.env.HOME || '/' })).rules
}

function understood<T extends { readonly problems: readonly string[] }>(read: T): T {
  if (read.problems.length > 0) throw new CliExit(exitCodes.usage, read.problems.map((problem) => `error: ${problem}`).join('\n'))
  return read
}
