/**
 * Judges what a command changed in its private view of the workspace, as a whole: apply it, ask a person, or drop it. Nothing is applied
 * in part, because one of several changes without the others leaves a broken state.
 */

import { digest } from '../../kit/sha256.ts'
import { count, cut, grouped } from '../../kit/text.ts'
import type { Change, ChangeReview } from '../../runtime/changes.ts'
import type { RuleName } from '../rules.ts'
import { isUnder } from '../targets/path.ts'
import { type ChangeView, createChangeView } from './change-view.ts'
import { changesDigest } from './changes-digest.ts'
import { summariseChanges } from './changes-summary.ts'
import { type Finding, tellFindings } from './finding.ts'
import { judgeGitChanges } from './git/git-changes.ts'
import { createHarmlessJudge } from './harmless/harmless.ts'
import { judgeGitMoves } from './harmless/judge-moves.ts'
import { beyondLimits, findSecrets } from './harmless/limits.ts'
import { isHiddenSetting } from './harmless/run-unasked.ts'
import { createPathLock, type PathLock } from './locked-paths.ts'
import { resolveLink } from './resolve-link.ts'
import type { ReviewContext } from './review-context.ts'

type Decision = Pick<ChangeReview, 'verdict' | 'rule' | 'reason' | 'doubts'> & { readonly rule: RuleName | `rule.${string}` }

/**
 * Never throws: in doubt it denies. Two things are left out when the changes are applied, and the reason says so: pipes, sockets and
 * devices (`after.kind` is `other`), and the set-user-ID, set-group-ID and sticky bits of `after.mode`.
 */
export function reviewChanges(changes: readonly Change[], context: ReviewContext): ChangeReview {
  const summary = summariseChanges(changes, context.git)
  const { verdict, rule, reason, doubts } = decideSafely(changes, context)
  const told = cut(reason + omissions(changes), 4_000)
  return { digest: changesDigest(changes), verdict, rule, reason: told, summary, count: changes.length, ...(doubts && { doubts }) }
}

/** Whether the judgement of now is worse than the one that let the changes through, or that a person answered with yes. */
export function isWorse(now: ChangeReview, then: ChangeReview | undefined): boolean {
  if (now.verdict === 'apply') return false
  return now.verdict === 'deny' || then?.verdict !== 'ask' || now.doubts !== then.doubts
}

/**
 * Returns what would be refused of the changes whatever the level, each as one line. Never throws: what cannot be judged is refused. An
 * undo is judged so: it needs no question, because a person asks for it.
 */
export function refusalsOf(changes: readonly Change[], context: ReviewContext): readonly string[] {
  try {
    const denied = findingsOf(changes, context).filter(({ weight }) => weight === 'deny')
    const ruled = context.ruled?.verdict === 'deny' ? [context.ruled.reason] : []
    return [...denied.map((finding) => tellFindings([finding])), ...ruled]
  } catch (error) {
    return [`the judgement of the changes failed (${String(error)})`]
  }
}

function decideSafely(changes: readonly Change[], context: ReviewContext): Decision {
  try {
    return decide(changes, context)
  } catch (error) {
    return { verdict: 'deny', rule: 'gate.error', reason: `the judgement of the changes failed (${String(error)}); nothing was applied` }
  }
}

function decide(changes: readonly Change[], context: ReviewContext): Decision {
  const { level } = context
  if (changes.length === 0) return { verdict: 'apply', rule: 'changes.none', reason: 'the command changed nothing' }
  if (level === 'readonly') return dropped('changes.readonly', 'autonomy is readonly, so what the command changed is dropped')
  const view = createChangeView(changes, context.look)
  const findings = findingsIn(view, context)
  const doubts = doubtsOf(findings, context.ruled?.rule)
  return { ...weigh(view, context, findings), ...(doubts && { doubts }) }
}

function findingsIn(view: ChangeView, context: ReviewContext): readonly Finding[] {
  const lock = createPathLock(view, context)
  return [...paths(view, context, lock), ...judgeGitChanges(view, context), ...judgeGitMoves(view, { ...context, lock })]
}

function doubtsOf(findings: readonly Finding[], ruled: string | undefined): string | undefined {
  if (findings.length === 0 && ruled === undefined) return undefined
  return digest([
    ...findings.map(({ weight, rule, path, why }) => `${weight} ${rule} ${path.toWellFormed()} ${why.toWellFormed()}`).sort(),
    ruled ?? '',
  ])
}

function weigh(view: ChangeView, context: ReviewContext, findings: readonly Finding[]): Decision {
  const denied = findings.filter(({ weight }) => weight === 'deny')
  if (denied[0])
    return dropped(denied[0].rule, `${tellFindings(denied)}. Nothing was applied; leave these paths alone, or ask the operator`)
  const { ruled, approved, level } = context
  if (ruled?.verdict === 'deny') return dropped(ruled.rule, `${ruled.reason}. Nothing was applied`)
  if (ruled) return asking(ruled.rule, findings.length > 0 ? `${ruled.reason}; ${tellFindings(findings)}` : ruled.reason)
  if (approved) return { verdict: 'apply', rule: 'changes.approved', reason: 'the command was approved before it ran' }
  return questions(view, context, findings) ?? harmless(level)
}

/** @returns what the rules say of changes that are in the workspace already, whatever the level */
export function findingsOf(changes: readonly Change[], context: ReviewContext): readonly Finding[] {
  return findingsIn(createChangeView(changes, context.look), context)
}

function dropped(rule: Decision['rule'], reason: string): Decision {
  return { verdict: 'deny', rule, reason }
}

function asking(rule: Decision['rule'], reason: string): Decision {
  return { verdict: 'ask', rule, reason }
}

function harmless(level: ReviewContext['level']): Decision {
  if (level === 'full') return { verdict: 'apply', rule: 'autonomy.full', reason: 'autonomy is full: what nothing forbids is applied' }
  return { verdict: 'apply', rule: 'changes.harmless', reason: 'every change is harmless' }
}

function paths(view: ChangeView, context: ReviewContext, lock: PathLock): readonly Finding[] {
  return view.changes.flatMap((change) => {
    const locked = lock(change.path)
    const link = judgeLink(change, { view, context, lock })
    return [...(locked ? [{ ...locked, path: change.path }] : []), ...(link ? [link] : [])]
  })
}

/** `findings` deny nothing. In full only those that a person must allow ask. */
function questions(view: ChangeView, context: ReviewContext, findings: readonly Finding[]): Decision | undefined {
  const { level, hasSecret, policy, git } = context
  const personal = findings.filter(({ weight }) => weight === 'person')
  if (personal[0]) return asking(personal[0].rule, tellFindings(personal))
  if (level === 'full') return policy.toolSettings === 'allow' ? undefined : hiddenSettings(view, context)
  const secrets = hasSecret ? findSecrets(view, hasSecret) : []
  if (secrets.length > 0) return asking('changes.secret', tellFindings(secrets))
  const limit = beyondLimits(view.changes, git !== undefined)
  if (limit !== undefined) return asking('changes.limits', limit)
  const { askAbout, isOnlyOutput } = createHarmlessJudge(view, context)
  if (findings.length === 0 && isOnlyOutput(view.changes))
    return {
      verdict: 'apply',
      rule: 'changes.ignored',
      reason: 'git ignores everything that changed, and no program runs or obeys it unasked',
    }
  const told = findings.length > 0 ? `; ${tellFindings(findings)}` : ''
  if (level === 'supervised')
    return asking(findings[0]?.rule ?? 'changes.supervised', `autonomy is supervised: changes to the workspace need a yes${told}`)
  const doubts = [...findings, ...view.changes.flatMap((change) => askAbout(change) ?? [])]
  return doubts[0] && asking(doubts[0].rule, tellFindings(doubts))
}

/** The configuration of a tool, or an instruction for an agent, would act outside of every sandbox without anybody having looked at it. */
function hiddenSettings(view: ChangeView, context: ReviewContext): Decision | undefined {
  const { askAbout } = createHarmlessJudge(view, context)
  const found = view.changes.flatMap((change) => (isHiddenSetting(change.path) && change.after ? (askAbout(change) ?? []) : []))
  return found[0] && asking(found[0].rule, `${tellFindings(found)} (security.tool_settings = "allow" lets full change such files)`)
}

function omissions(changes: readonly Change[]): string {
  const others = changes.filter(({ after }) => after?.kind === 'other')
  const bits = changes.filter(({ before, after }) => ((after?.mode ?? 0) & 0o7000 & ~(before?.mode ?? 0)) !== 0 && after?.kind !== 'link')
  return [
    others.length > 0 ? `; left out: ${grouped(others.length)} of the kinds pipe, socket and device` : '',
    bits.length > 0 ? `; the set-user-ID, set-group-ID and sticky bits of ${count(bits.length, 'path')} are cleared` : '',
  ].join('')
}

/** Virtual environments and package managers link to programs in these folders. */
const systemFolders = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/opt', '/nix/store', '/gnu/store']

type Links = { readonly view: ChangeView; readonly context: ReviewContext; readonly lock: PathLock }

/** Judges new and changed symbolic links: they may lead to places in the workspace, or to folders that a command only reads. */
function judgeLink({ path, before, after }: Change, { view, context, lock }: Links): Finding | undefined {
  if (after?.kind !== 'link' || (before?.kind === 'link' && before.target === after.target)) return
  const deny = (rule: Finding['rule'], why: string) => ({ weight: 'deny', rule, path, why }) as const
  const end = resolveLink({ view, policy: context.policy, link: path, side: 'after' })
  if (end === undefined) return deny('changes.link', 'a link that cannot be followed')
  if (end.outside !== undefined) {
    const isIn = (folder: string) => isUnder(end.outside, folder)
    const isReadOnly = systemFolders.some(isIn) || (context.readOnlyFolders?.().some(isIn) ?? false)
    return isReadOnly ? undefined : deny('changes.link', `a link that leads out of the workspace, to ${JSON.stringify(end.outside)}`)
  }
  const locked = lock(end.inside)
  if (locked?.rule === 'changes.forbidden') return deny(locked.rule, `a link to ${JSON.stringify(end.inside)}, ${locked.why}`)
}
