/** Recognises a command that is one plain git command, without a shell and without settings given before the sub-command. */

import type { CommandPlan } from '../../command/verdict.ts'

/** @returns the sub-command: `remote` for `git -C folder remote add …` */
export function plainGit(plan: CommandPlan | undefined): string | undefined {
  if (plan?.kind !== 'argv' || !/(?:^|\/)git$/.test(plan.executable)) return
  const words = plan.argv.slice(1)
  while (words[0] === '-C' || words[0] === '--no-pager') words.splice(0, words[0] === '-C' ? 2 : 1)
  const [sub] = words
  return sub !== undefined && /^[a-z][a-z-]*$/.test(sub) ? sub : undefined
}

/** Sub-commands that bring files of the repository's history into the work tree; the files may have protected names. */
const fromHistory = new Set(
  'clone checkout switch pull merge rebase cherry-pick revert stash restore reset worktree submodule sparse-checkout'.split(' '),
)

export function bringsHistory(sub: string | undefined): boolean {
  return sub !== undefined && fromHistory.has(sub)
}
