/** Finds out whether there may be rules of the operator, without loading what reads them. */

import { existsSync } from 'node:fs'
import type { Setup } from '../../api.ts'

export type RuleSetup = Pick<Setup, 'config' | 'paths' | 'context' | 'log'>

export function hasRuleFolders({ paths, config }: RuleSetup): boolean {
  return [`${paths.home}/rules`, `${config.workspaceDir}/.braidclaw/rules`].some((folder) => existsSync(folder))
}
