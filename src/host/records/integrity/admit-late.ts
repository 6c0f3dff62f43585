/** Judges a change set again when a person decides about it after its turn: `approvals allow`, `changes apply`, `undo`, `redo`. */

import type { Memory } from '../../../memory/memory.ts'
import { consequenceIn } from '../../../runtime/replay/external-entry.ts'
import type { Admit, Entering } from '../../../workspace/changes/contract.ts'
import type { Setup } from '../../api.ts'
import { configFor } from '../../setup/setup.ts'
import { admitBy, type ChangeJudge } from '../../transactions/admit-changes.ts'
import { pastJudges } from './other-policy.ts'

/** The policies are that of this process and that of the files as they are now, both for the workspace of the set. */
export function admitLate(setup: Setup, memory: Memory): Admit {
  return admitBy(setup, (set) => judgesFor(setup, memory, set))
}

async function judgesFor(setup: Setup, memory: Memory, set: Entering): Promise<readonly ChangeJudge[]> {
  const own = { ...setup.config, workspaceDir: set.workspace }
  const now = configFor(setup, set.workspace)
  const isSame = JSON.stringify(own.security) === JSON.stringify(now.security)
  return Promise.all((isSame ? [now] : [own, now]).map((config) => judgeFor({ ...setup, config }, memory, set)))
}

/**
 * The call is judged again too, because the policy may forbid it today. A person was asked, or asks, so that the level only counts when it
 * lets nothing be changed.
 */
async function judgeFor(setup: Setup, memory: Memory, { about: { run, call } }: Entering): Promise<ChangeJudge> {
  const entries = memory.journal.events(run)
  const { judge, judgeChanges } = (await pastJudges(setup, memory))(entries)
  const past = entries.flatMap((entry) => consequenceIn(entry) ?? []).find((event) => event.type === 'act' && event.id === call)
  const act = past?.type === 'act' ? { ...past, judgement: await judge(past.call) } : undefined
  const by = judgeChanges(act)
  const refused = act?.judgement.verdict === 'deny' ? act.judgement : undefined
  return {
    async review(set) {
      const review = await by.review(set)
      return refused ? { ...review, verdict: 'deny', rule: refused.rule, reason: refused.reason } : review
    },
    context: by.context,
  }
}
