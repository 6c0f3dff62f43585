/** Explains to the model why git failed, when the reason is what the sandbox does and git cannot know it. */

import { relative } from 'node:path'
import type { ToolOutcome } from '../../runtime/event.ts'
import { isUnder } from '../../security/targets/path.ts'

/** @param workspace an absolute path without symbolic links. @param outcome what this tool returned */
export async function withGitFailure<Outcome extends ToolOutcome>(workspace: string, tool: string, outcome: Outcome): Promise<Outcome> {
  const why = tool === 'shell' && /^fatal: /m.test(outcome.output) ? await reason(workspace, outcome.output) : undefined
  return why === undefined ? outcome : { ...outcome, output: `${outcome.output}\n[${why}]` }
}

async function reason(workspace: string, output: string): Promise<string | undefined> {
  if (/^fatal: hardlink different from source at /m.test(output))
    return 'a private view cannot make a hard link to a file that was there before; for git clone, add --no-hardlinks'
  if (!/^fatal: not a git repository/m.test(output)) return
  const { repositoriesAround } = await import('../../workspace/git/read-settings.ts')
  const [around] = repositoriesAround(workspace)
  if (around !== undefined && !isUnder(around.root, workspace))
    return `the workspace is a folder of the git repository in ${relative(workspace, around.root)}, and commands see nothing outside the workspace; git works when the user starts with that folder as the workspace`
}
