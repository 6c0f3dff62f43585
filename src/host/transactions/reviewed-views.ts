/** Judges what the commands of one conversation changed, by the policy that the gate reads, and keeps the changes in the home. */

import type { Change, ChangeReview } from '../../runtime/changes.ts'
import { findToolchains } from '../../sandbox/surroundings/toolchains.ts'
import { reviewChanges } from '../../security/changes/review-changes.ts'
import type { ReviewLevel } from '../../security/changes/review-context.ts'
import { changeRuleFor, coversChanges } from '../../security/changes/standing-changes.ts'
import type { Gate } from '../../security/gate.ts'
import type { Policy } from '../../security/policy.ts'
import type { Redactor } from '../../security/redaction/redact.ts'
import { forbiddenReads } from '../../security/targets/forbidden-reads.ts'
import type { About } from '../../workspace/changes/contract.ts'
import type { Look } from '../../workspace/changes/look.ts'
import type { Setup } from '../api.ts'
import { createChangeRules } from './change-rules.ts'
import { type CommandViews, createCommandViews, type ViewsOptions } from './command-views.ts'
import { hooksNotRun, runByGit } from './git-around.ts'
import { openChanges } from './open-changes.ts'
import type { StandingAnswers } from './standing-answers.ts'

export type ReviewedOptions = {
  readonly setup: Pick<Setup, 'config' | 'paths' | 'log' | 'redactor' | 'context'>
  readonly policy: Policy
  readonly conversationId: string
  /** Returns the current run. */
  readonly runId: () => string
  readonly dryRun?: boolean
  readonly gate: () => Promise<Pick<Gate, 'plan'>>
  /** The standing answers to changes; absent: there are none, and none can be given. */
  readonly standing?: StandingAnswers | undefined
}

type Act = Parameters<ViewsOptions['review']>[0]

/** Opens nothing before a command has changed something. */
export function createReviewedViews({
  setup,
  policy,
  conversationId,
  runId,
  gate,
  dryRun = false,
  standing,
}: ReviewedOptions): CommandViews {
  const { log, redactor } = setup
  const judge = reviewerBy({ setup, policy, gate })
  const review: ViewsOptions['review'] = async (act, changes, look) => {
    const judged = await judge(act, changes, look)
    // In a dry run a person sees every change set, also one that would be applied unasked.
    if (dryRun) return judged.verdict === 'apply' ? { ...judged, verdict: 'ask' } : judged
    const plan = standing && judged.verdict === 'ask' ? (await gate()).plan(act.judgement.plan) : undefined
    return standing && plan ? answered({ plan, changes, review: judged }, standing) : judged
  }

  const aboutOf = ({ call }: Act): About => {
    const { command } = call.input
    const shown = call.name === 'shell' && typeof command === 'string' ? { command: redactor.text(command) } : {}
    return { run: runId(), call: call.id, conversation: conversationId, tool: call.name, ...shown, at: Date.now() }
  }

  const views = createCommandViews({ workspace: policy.workspace, store: openChanges(setup, policy.workspace), log, review, aboutOf })
  return {
    ...views,
    async settle(act, ran) {
      const settled = await views.settle(act, ran)
      const changed = views.changesOf(act.id)?.changes.map(({ path }) => path) ?? []
      const note = hooksNotRun({ workspace: policy.workspace, home: policy.home, env: setup.context.env }, changed)
      return note === undefined ? settled : { ...settled, output: `${settled.output}\n[${note}]` }
    },
  }
}

type Asked = Parameters<typeof coversChanges>[1]

function answered(asked: Asked, standing: StandingAnswers): ChangeReview {
  const { plan, changes, review } = asked
  if (standing.rules().some((rule) => coversChanges(rule, asked)))
    return {
      ...review,
      verdict: 'apply',
      rule: 'changes.always',
      reason: 'the operator said "always" to changes of these paths by this command',
    }
  const rule = changeRuleFor(plan, changes)
  if (rule) standing.offer(review.digest, rule)
  return review
}

/** Returns the review of what a call changed, live and of a past run. */
export function reviewerBy({ setup, policy, gate }: Pick<ReviewedOptions, 'setup' | 'policy' | 'gate'>) {
  const hasSecret = secretsBy(setup.redactor)
  const rulesOn = createChangeRules(setup)
  return async (act: Act, changes: readonly Change[], look: Omit<Look, typeof Symbol.dispose>): Promise<ChangeReview> => {
    const command = (await gate()).plan(act.judgement.plan)?.commands[0]?.plan
    return reviewChanges(changes, {
      policy,
      level: levelOf(policy),
      approved: isApproved(act, policy),
      ...(command ? { command } : {}),
      ...(hasSecret ? { hasSecret } : {}),
      runByGit: runByGit({ workspace: policy.workspace, home: policy.home, env: setup.context.env }),
      readOnlyFolders: () =>
        findToolchains({ path: setup.context.env.PATH ?? '', home: policy.home, except: [policy.workspace, setup.paths.home] }).mounts,
      isForbiddenRead: unreadBefore(policy, changes),
      ruled: await rulesOn(changes, act),
      look,
    })
  }
}

/** A command may make such a file, and nobody reads it from then on; it cannot have read one that was there before. */
function unreadBefore({ workspace, home, forbiddenReads: patterns = [] }: Policy, changes: readonly Change[]): (path: string) => boolean {
  const isUnread = forbiddenReads({ patterns, workspace, home })
  const before = new Set(changes.flatMap(({ path, before }) => (before?.kind === 'file' ? [path] : [])))
  return (path) => before.has(path) && isUnread(`${workspace}/${path}`) !== undefined
}

function levelOf({ autonomy, approveAllMedium }: Policy): ReviewLevel {
  return autonomy === 'supervised' && approveAllMedium ? 'auto' : autonomy
}

/** Whoever approved the command, or every such command, before it ran approved its changes with it. */
function isApproved({ approval, judgement }: Act, { ask }: Policy): boolean {
  return approval !== undefined || judgement.rule === 'autonomy.always' || ask === 'before'
}

function secretsBy(redactor: Redactor): ((content: Uint8Array) => boolean) | undefined {
  if (redactor.count() === 0) return undefined
  return (content) => {
    const text = new TextDecoder().decode(content)
    return redactor.text(text) !== text
  }
}
