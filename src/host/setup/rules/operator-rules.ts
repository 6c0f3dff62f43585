/** Loads the operator's rules for a workspace, or the rules of one file; an invalid rule ends the command. */

import { createTrust } from '../../../config/trust.ts'
import type { Places } from '../../../runtime/rules/condition.ts'
import { lintRules } from '../../../runtime/rules/lint.ts'
import type { Rule } from '../../../runtime/rules/parse-rules.ts'
import { isToolName } from '../../../tools/executable/description.ts'
import { toolKinds } from '../../../tools/list.ts'
import type { Setup } from '../../api.ts'
import { FailureError } from '../../failure.ts'
import { type LoadedRules, loadRules, readRules } from './rule-files.ts'
import type { RuleSetup } from './rule-folders.ts'

/** Returns the rules for runs in this workspace. @throws FailureError `usage` that names every problem. */
export function rulesInForce(setup: RuleSetup): LoadedRules {
  const { config, paths, context, log } = setup
  const workspace = config.workspaceDir
  const trusted = createTrust(paths.trustedFolders).isTrusted(workspace)
  const loaded = loadRules({ home: paths.home, userHome: context.env.HOME || '/', workspace, trusted })
  for (const notice of loaded.notices) log('warn', notice)
  understood(loaded)
  checkTools(setup, loaded.written)
  return loaded
}

/** `file` may be relative to the current folder. @throws FailureError `usage` that names every problem. */
export function rulesOfFile(setup: Setup, file: string) {
  const path = file.startsWith('/') ? file : `${setup.context.cwd}/${file}`
  const { rules } = understood(readRules(path, placesOf(setup)))
  checkTools(setup, rules)
  return rules
}

/**
 * A rule that can never apply protects nothing: a certain mistake ends the command, a likely one causes a warning. @throws FailureError
 * `usage`
 */
function checkTools(setup: RuleSetup, rules: readonly Rule[]): void {
  const known = { builtIn: toolKinds, own: setup.config.tools.executables, isToolName }
  const found = lintRules({ rules, known, places: placesOf(setup) })
  for (const warning of found.warnings) setup.log('warn', warning)
  understood(found)
}

function placesOf({ config, context }: RuleSetup): Places {
  return { workspace: config.workspaceDir, home: context.env.HOME || '/' }
}

function understood<T extends { readonly problems: readonly string[] }>(read: T): T {
  if (read.problems.length > 0) throw new FailureError('usage', read.problems)
  return read
}
