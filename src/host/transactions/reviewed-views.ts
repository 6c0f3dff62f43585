/** Judges what the commands of one conversation changed, by the policy that the gate reads, and keeps the changes in the home. */

import type { Approvals } from '../../memory/approval-table.ts'
import type { Change, ChangeReview } from '../../runtime/changes.ts'
import { findToolchains } from '../../sandbox/surroundings/toolchains.ts'
import { alwaysKey } from '../../security/always.ts'
import { reviewChanges } from '../../security/changes/review-changes.ts'
import type { ReviewLevel } from '../../security/changes/review-context.ts'
import {
  type ChangeRule,
  changeRuleFor,
  changeRuleText,
  changeRuleTool,
  coversChanges,
  parseChangeRule,
  tellChangeRule,
} from '../../security/changes/standing-changes.ts'
import type { Gate } from '../../security/gate.ts'
import type { Policy } from '../../security/policy.ts'
import type { Redactor } from '../../security/redaction/redact.ts'
import { forbiddenReads } from '../../security/targets/forbidden-reads.ts'
import type { About } from '../../workspace/changes/contract.ts'
import type { Look } from '../../workspace/changes/look.ts'
import type { Setup } from '../api.ts'
import { type CommandViews, createCommandViews, type ViewsOptions } from './command-views.ts'
import { hooksNotRun, runByGit } from './git-around.ts'
import { openChanges } from './open-changes.ts'

export type ReviewedOptions = {
  readonly setup: Pick<Setup, 'config' | 'paths' | 'log' | 'redactor' | 'context'>
  readonly policy: Policy
  readonly conversationId: string
  /** Returns the current run. */
  readonly runId: () => string
  readonly dryRun?: boolean
  readonly gate: () => Promise<Pick<Gate, 'plan'>>
  /** The rules that a person's "always" made; absent: none count. */
  readonly standing?: Pick<Approvals, 'rules' | 'hasRule' | 'addRule'> | undefined
}

export type ReviewedViews = CommandViews & {
  /**
   * Lets the command of this call make changes to the same paths without a question from now on. @returns a sentence that says so; undefined
   * where such changes must be asked about each time
   */
  allowAlways(callId: string): string | undefined
}

type Act = Parameters<ViewsOptions['review']>[0]

/** Opens nothing before a command has changed something. */
export function createReviewedViews({
  setup,
  policy,
  conversationId,
  runId,
  gate,
  standing,
  dryRun = false,
}: ReviewedOptions): ReviewedViews {
  const { log, redactor } = setup
  const judge = reviewerBy({ setup, policy, gate, standing })
  const offered = new Map<string, ChangeRule>()
  /** In a dry run a person sees every change set, also one that would be applied unasked. */
  const review: typeof judge = async (...changed) => {
    const [act, changes] = changed
    const judged = await judge(...changed)
    const plan = judged.verdict === 'ask' ? (await gate()).plan(act.judgement.plan) : undefined
    const rule = plan && changeRuleFor(plan, changes)
    if (rule) offered.set(act.id, rule)
    return dryRun && judged.verdict === 'apply' ? { ...judged, verdict: 'ask' } : judged
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
    allowAlways(callId) {
      const rule = offered.get(callId)
      if (!rule || !standing) return undefined
      standing.addRule({ tool: changeRuleTool, scope: changeRuleText(rule), by: 'terminal' })
      return `always applied from now on: ${tellChangeRule(rule)}`
    },
  }
}

/** Returns the review of what a call changed, live and of a past run. */
export function reviewerBy({ setup, policy, gate, standing }: Pick<ReviewedOptions, 'setup' | 'policy' | 'gate' | 'standing'>) {
  const hasSecret = secretsBy(setup.redactor)
  return async (act: Act, changes: readonly Change[], look: Omit<Look, typeof Symbol.dispose>): Promise<ChangeReview> => {
    const plan = (await gate()).plan(act.judgement.plan)
    const command = plan?.commands[0]?.plan
    const judged = reviewChanges(changes, {
      policy,
      level: levelOf(policy),
      approved: isApproved(act, policy) || (plan?.always !== undefined && standing?.hasRule('shell', alwaysKey(plan.always)) === true),
      ...(command ? { command } : {}),
      ...(hasSecret ? { hasSecret } : {}),
      runByGit: runByGit({ workspace: policy.workspace, home: policy.home, env: setup.context.env }),
      readOnlyFolders: () =>
        findToolchains({ path: setup.context.env.PATH ?? '', home: policy.home, except: [policy.workspace, setup.paths.home] }).mounts,
      isForbiddenRead: unreadBefore(policy, changes),
      look,
    })
    const rule = plan && judged.verdict === 'ask' ? covering({ plan, changes, review: judged }, standing) : undefined
    return rule ? { ...judged, verdict: 'apply', rule: 'changes.always', reason: `always allowed: ${tellChangeRule(rule)}` } : judged
  }
}

function covering(asked: Parameters<typeof coversChanges>[1], standing: ReviewedOptions['standing']): ChangeRule | undefined {
  const rules = standing?.rules() ?? []
  return rules
    .flatMap(({ tool, scope }) => (tool === changeRuleTool ? (parseChangeRule(scope) ?? []) : []))
    .find((rule) => coversChanges(rule, asked))
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
