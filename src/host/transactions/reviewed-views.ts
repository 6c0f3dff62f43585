/** Judges what the commands of one conversation changed, by the policy that the gate reads, and keeps the changes in the home. */

import { lazy, memo } from '../../kit/lazy.ts'
import type { Memory } from '../../memory/memory.ts'
import type { Change, ChangeReview, ChangeSet } from '../../runtime/changes.ts'
import type { Proposal } from '../../runtime/event.ts'
import { type RuleOnChanges, rulesOnChanges } from '../../runtime/rules/rule-thread.ts'
import { findToolchains } from '../../sandbox/filesystem/toolchains.ts'
import { createChangeView } from '../../security/changes/change-view.ts'
import { createHarmlessJudge } from '../../security/changes/harmless/harmless.ts'
import type { AroundWrites } from '../../security/changes/harmless/may-pass.ts'
import { reviewChanges } from '../../security/changes/review-changes.ts'
import type { Look, ReviewContext, ReviewLevel } from '../../security/changes/review-context.ts'
import {
  answeredBy,
  type ChangeRule,
  changeRuleFor,
  changeRuleText,
  changeRuleTool,
  coversChanges,
  parseChangeRule,
  pathRuleFor,
  tellChangeRule,
} from '../../security/changes/standing-changes.ts'
import type { Gate } from '../../security/gate.ts'
import type { Policy } from '../../security/policy.ts'
import type { Redactor } from '../../security/redaction/redact.ts'
import { forbiddenReads } from '../../security/targets/path.ts'
import type { About, Side } from '../../workspace/changes/contract.ts'
import { createLook } from '../../workspace/changes/look.ts'
import type { ChangeStore } from '../../workspace/changes/store.ts'
import { createIgnoredPaths } from '../../workspace/git/ignored-paths.ts'
import { readMoves } from '../../workspace/git/read-moves.ts'
import type { Setup } from '../api.ts'
import { policyOf } from '../setup/effective-policy.ts'
import { hasRules, type RuleSetup } from '../setup/setup.ts'
import { admitBy, type ChangeJudge, type JudgedSet, lookOnce, refusedBack } from './admit-changes.ts'
import { type CommandViews, createCommandViews, type ViewsOptions } from './command-views.ts'
import { createSweep, type Sweep } from './direct-sweep.ts'
import { hooksNotRun, runByGit } from './git-around.ts'
import { openChanges } from './open-changes.ts'

export type ReviewedOptions = {
  readonly setup: Pick<Setup, 'config' | 'paths' | 'log' | 'redactor' | 'context' | 'changed' | 'access' | 'ownRules'>
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

export type ReviewedViews = CommandViews & {
  readonly sweep: Sweep
  aroundWrites(): AroundWrites
  /** Asks the rules of the project about what the call of a file tool would change at this path. */
  ruledCall(set: ChangeSet, path: string): Promise<RuleOnChanges | undefined>
}

/** Longer files have no imports that a rule looks at. */
const mostRead = 16 * 1024 * 1024

/** Opens nothing before a command has changed something. */
export function createReviewedViews({
  setup,
  policy,
  conversationId,
  runId,
  gate,
  dryRun = false,
  standing,
}: ReviewedOptions): ReviewedViews {
  const { log, redactor } = setup
  const judge = changeJudge({ setup, policy, gate, standing })
  const reviewed = async (act: Act, changes: readonly Change[], judged: ChangeReview): Promise<ChangeReview> => {
    // In a dry run a person sees every change set, also one that would be applied unasked.
    if (dryRun) return judged.verdict === 'apply' ? { ...judged, verdict: 'ask' } : judged
    const plan = standing && judged.verdict === 'ask' ? (await gate()).plan(act.judgement.plan) : undefined
    return standing && plan ? answered({ plan, changes, review: judged }, standing) : judged
  }
  const judgeOf = (act: Act, by = judge(act)): ChangeJudge => ({
    ...by,
    review: async (set) => reviewed(act, set.changes, await by.review(set)),
  })

  const aboutOf = ({ call }: Act): About => {
    const { command } = call.input
    const shown = call.name === 'shell' && typeof command === 'string' ? { command: redactor.text(command) } : {}
    return { run: runId(), call: call.id, conversation: conversationId, tool: call.name, ...shown, at: Date.now() }
  }

  const admit: ViewsOptions['admit'] = (act, judged) =>
    admitBy(
      setup,
      async () => [judgeOf(act), ...judgesOfToday({ setup, policy, gate, standing }).map((today) => judgeOf(act, today(act)))],
      judged,
    )
  const store = openChanges(setup, policy.workspace)
  const rules = lazy(() => load(setup))
  const review: ViewsOptions['review'] = async (act, given) => {
    const [judge, set] = [judgeOf(act), { ...given, look: lookOnce(given.look) }]
    const found = await judge.review(set)
    if (found.verdict !== 'apply') return { review: found }
    const undoable = await refusedBack([judge], set)
    return { review: found, judged: { at: performance.now(), readSet: given.look.readSet(), undoable } }
  }
  const views = createCommandViews({ workspace: policy.workspace, store, log, review, admit, aboutOf })
  return {
    ...views,
    sweep: createSweep({ setup, policy, originals: store.originals({ conversation: conversationId, run: runId }), runId }),
    aroundWrites: () => pathsAround({ setup, policy, standing }),
    async ruledCall(set, path) {
      const { structure } = await rules.get()
      const changes = set.changes.map((change) => ({ ...change, path }))
      using look = createLook({ workspace: policy.workspace, upper: policy.workspace, changes })
      const read: Look['read'] = (at, side, most) => {
        const [change] = at === path ? set.changes : []
        return change ? set.content(change, side, mostRead)?.subarray(0, most) : look.read(at, side, most)
      }
      return structure?.(changes, { ...look, read })
    },
    async settle(act, ran, signal, start) {
      const settled = await views.settle(act, ran, signal, start)
      const changed = views.changesOf(act.id)?.changes.map(({ path }) => path) ?? []
      const note = hooksNotRun({ workspace: policy.workspace, home: policy.home, env: setup.context.env }, changed)
      return note === undefined ? settled : { ...settled, output: `${settled.output}\n[${note}]` }
    },
  }
}

type StandingQuestion = Parameters<typeof coversChanges>[1]

function answered(asked: StandingQuestion, standing: StandingAnswers): ChangeReview {
  const { plan, changes, review } = asked
  if (standing.rules().some((rule) => coversChanges(rule, asked)))
    return {
      ...review,
      verdict: 'apply',
      rule: 'changes.always',
      reason: 'the operator said "always" to changes of these paths by this command',
    }
  const rule = review.rule === 'changes.supervised' ? changeRuleFor(plan, changes) : undefined
  if (rule) standing.offer(review.digest, rule)
  return review
}

/** Returns the judge of changes by one policy: of those of a call, or, without one, of those that were made in a copy. */
export function changeJudge(judging: Judging): (act: Act | undefined) => ChangeJudge {
  const contextOf = contextsBy(judging)
  return (act) => ({
    async review(set) {
      const context = await contextOf(act, set)
      const review = reviewChanges(set.changes, context)
      if (judging.standing && review.rule === 'changes.not_harmless')
        offerNames(set.changes, { context, standing: judging.standing, digest: review.digest })
      return review
    },
    async context(set, to) {
      return contextOf(act, set, to)
    },
  })
}

/** Opens the store for the calls of file tools, which the gate judged before: what is refused at every level is looked for once more. */
export function openJudgedChanges(setup: Judging['setup'], policy: Policy): ChangeStore {
  const noCalls = { setup, gate: () => Promise.reject(new Error('file tools have no commands')) }
  const judges = async () => [changeJudge({ ...noCalls, policy })(undefined)]
  return openChanges(setup, policy.workspace, admitBy(setup, judges))
}

/** Returns the judge by the configuration of now, when its files changed since it was loaded; none otherwise. */
function judgesOfToday({ setup, policy, gate, standing }: Judging): readonly ReturnType<typeof changeJudge>[] {
  const security = setup.changed?.()
  if (security === undefined) return []
  const config = { ...setup.config, workspaceDir: policy.workspace, security: { ...setup.config.security, ...security } }
  const today = policyOf(config, setup.paths, setup.context.env, setup.access)
  return [changeJudge({ setup: { ...setup, config }, policy: today, gate, standing })]
}

export type Judging = Pick<ReviewedOptions, 'setup' | 'policy' | 'gate' | 'standing'>

/** Reads what git ignores now, and the names to which a person said "always". */
function pathsAround({ setup, policy, standing }: Omit<Judging, 'gate'>): AroundWrites {
  // An undo never asks what git ignores.
  const rules = memo(() => createIgnoredPaths({ workspace: policy.workspace, home: policy.home, env: setup.context.env }))
  return { ignored: (path, isFolder) => rules('')(path, isFolder), answered: answeredBy(standing?.rules() ?? [], policy.workspace) }
}

/** Returns what the judgement of changes needs to know. Without `act` no call made them. */
function contextsBy({ setup, policy, gate, standing }: Judging) {
  const hasSecret = secretsBy(setup.redactor)
  const rulesOn = createChangeRules(setup)
  return async (asked: Act | undefined, { changes, look, upper }: JudgedSet, to: Side = 'after'): Promise<ReviewContext> => {
    // The operator's rules are about what calls do, not about an undo. Git may hold again what it held before.
    const isUndo = to === 'before'
    const act = isUndo ? undefined : asked
    const planned = act && (await gate()).plan(act.judgement.plan)?.commands[0]
    const command = planned?.plan
    const context: ReviewContext = {
      ...pathsAround({ setup, policy, standing }),
      policy,
      level: levelOf(policy),
      approved: act !== undefined && isApproved(act, policy),
      command,
      hasSecret,
      runByGit: runByGit({ workspace: policy.workspace, home: policy.home, env: setup.context.env }),
      readOnlyFolders: () =>
        findToolchains({ path: setup.context.env.PATH ?? '', home: policy.home, except: [policy.workspace, setup.paths.home] }).mounts,
      isForbiddenRead: unreadBefore(policy, changes),
      ruled: isUndo ? undefined : await rulesOn(changes, look, act),
      look,
    }
    return isUndo ? context : { ...context, git: readMoves({ upper, changes, context, isTransfer: planned?.transfer !== undefined }) }
  }
}

type Offer = { readonly context: ReviewContext; readonly standing: StandingAnswers; readonly digest: string }

function offerNames(changes: readonly Change[], { context, standing, digest }: Offer): void {
  const names = createHarmlessJudge(createChangeView(changes, context.look), context).askingNames()
  const rule = names && pathRuleFor(context.policy.workspace, names)
  if (rule) standing.offer(digest, rule)
}

/** A command may make such a file, and nobody reads it from then on; it cannot have read one that was there before. */
function unreadBefore({ workspace, home, forbiddenReads: patterns = [] }: Policy, changes: readonly Change[]): (path: string) => boolean {
  const isUnread = forbiddenReads({ patterns, workspace, home })
  const before = new Set(changes.flatMap(({ path, before }) => (before?.kind === 'file' ? [path] : [])))
  return (path) => before.has(path) && isUnread(`${workspace}/${path}`) !== undefined
}

function levelOf({ autonomy, approveAllMedium, inCopy }: Policy): ReviewLevel {
  if (inCopy && autonomy !== 'readonly') return 'copy'
  return autonomy === 'supervised' && approveAllMedium ? 'auto' : autonomy
}

/** Returns whether a person approved the command, or every such command, before it ran: that covers its changes. */
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

/** Asks the operator's rules and those of the project, as they were at the first question. Rejects when they cannot be understood. */
export function createChangeRules(setup: RuleSetup) {
  const state: { rules?: ReturnType<typeof load> } = {}
  return async (changes: readonly Change[], look: Look, proposal?: Proposal): Promise<RuleOnChanges | undefined> => {
    state.rules ??= load(setup)
    const { written, structure } = await state.rules
    const own = rulesOnChanges(written, changes, proposal)
    const ofProject = own?.verdict === 'deny' ? undefined : structure?.(changes, look)
    return own === undefined || ofProject?.verdict === 'deny' ? (ofProject ?? own) : own
  }
}

async function load(setup: RuleSetup) {
  if (!hasRules(setup)) return { written: [], structure: undefined }
  const { changeRulesInForce } = await import('./change-rules.ts')
  return changeRulesInForce(setup)
}

export type StandingAnswers = {
  rules(): readonly ChangeRule[]
  /** Called when changes ask: `rule` is what "always" would store for the change set of this digest. */
  offer(digest: string, rule: ChangeRule): void
  /** Stores the offered rule. @returns what is applied from now on; undefined when none was offered for this digest */
  accept(digest: string): string | undefined
}

/** Stores what a person answered with "always" to the changes of a command, and finds it again. */
export function createStandingAnswers({ approvals }: Pick<Memory, 'approvals'>): StandingAnswers {
  const offered = new Map<string, ChangeRule>()
  return {
    rules: () => approvals.rules().flatMap(({ tool, scope }) => (tool === changeRuleTool ? (parseChangeRule(scope) ?? []) : [])),
    offer: (digest, rule) => void offered.set(digest, rule),
    accept(digest) {
      const rule = offered.get(digest)
      if (rule === undefined) return undefined
      approvals.addRule({ tool: changeRuleTool, scope: changeRuleText(rule), by: 'terminal' })
      return `always applied from now on: ${tellChangeRule(rule)}`
    },
  }
}
