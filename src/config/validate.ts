/** Checks for `config validate` that the workspace named in the configuration exists. */

import { statSync } from 'node:fs'
import type { Config, ConfigProblem, Origins } from './config.ts'
import { type Loaded, type LoadInput, loadConfig } from './load.ts'
import { errorCode, explainErrno } from './text/read-toml-file.ts'
import { quote } from './text/toml-quote.ts'
import { builtIn } from './workspace.ts'

/** Works like `loadConfig`, but also requires that the workspace exists. */
export function validateConfig(input: LoadInput): Loaded {
  const loaded = loadConfig(input)
  if (!loaded.ok) return loaded
  const problems = workspaceProblems(loaded.config, loaded.origins)
  return problems.length === 0 ? loaded : { ok: false, problems }
}

export function workspaceProblems({ workspaceDir }: Config, origins: Origins): readonly ConfigProblem[] {
  const { where = 'built in', line, column } = origins.workspace_dir ?? {}
  const why = folderProblem(workspaceDir, where === builtIn.where)
  return why === undefined ? [] : [{ file: where, line, column, key: 'workspace_dir', message: `${quote(workspaceDir)} ${why}` }]
}

/** `ours`: the default workspace, which is created on first use. */
function folderProblem(path: string, ours: boolean): string | undefined {
  try {
    return statSync(path).isDirectory() ? undefined : 'is a file, not a folder; choose another path'
  } catch (error) {
    const code = errorCode(error)
    if (ours && code === 'ENOENT') return undefined
    return code === 'ENOENT' ? 'does not exist; create it or run "braidclaw init"' : `cannot be used: ${explainErrno(code)}`
  }
}
