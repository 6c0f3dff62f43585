/**
 * Judges what a command changed in its private view of the workspace, as a whole: apply it, ask a person, or drop it. Nothing is applied
 * in part, because one of several changes without the others leaves a broken state.
 */

import { count, grouped } from '../../kit/count.ts'
import { cut } from '../../kit/text.ts'
import type { Change, ChangeReview } from '../../runtime/changes.ts'
import type { RuleName } from '../rules.ts'
import { createChangeView } from './change-view.ts'
import { judgeLink } from './changed-links.ts'
import { changesDigest } from './changes-digest.ts'
import { summariseChanges } from './changes-summary.ts'
import { type Finding, tellFindings } from './finding.ts'
import { askAbout } from './harmless.ts'
import { beyondLimits, findSecrets } from './limits.ts'
import { createPathLock } from './locked-paths.ts'
import type { ReviewContext } from './review-context.ts'

type Decision = Pick<ChangeReview, 'verdict' | 'rule' | 'reason'> & { readonly rule: RuleName }

/**
 * Never throws: in doubt it denies. Two things are left out when the changes are applied, and the reason says so: pipes, sockets and
 * devices (`after.kind` is `other`), and the set-user-ID, set-group-ID and sticky bits of `after.mode`.
 */
export function reviewChanges(changes: readonly Change[], context: ReviewContext): ChangeReview {
  const digest = changesDigest(changes)
  const summary = summariseChanges(changes)
  const { verdict, rule, reason } = decideSafely(changes, context)
  return { digest, verdict, rule, reason: cut(reason + omissions(changes), 4_000), summary, count: changes.length }
}

function decideSafely(changes: readonly Change[], context: ReviewContext): Decision {
  try {
    return decide(changes, context)
  } catch (error) {
    return { verdict: 'deny', rule: 'gate.error', reason: `the judgement of the changes failed (${String(error)}); nothing was applied` }
  }
}

function decide(changes: readonly Change[], context: ReviewContext): Decision {
  const { level, approved } = context
  if (changes.length === 0) return { verdict: 'apply', rule: 'changes.none', reason: 'the command changed nothing' }
  if (level === 'readonly') return dropped('changes.readonly', 'autonomy is readonly, so what the command changed is dropped')
  const view = createChangeView(changes, context.look)
  const denied = refusals(view, context)
  if (denied[0])
    return dropped(denied[0].rule, `${tellFindings(denied)}. Nothing was applied; leave these paths alone, or ask the operator`)
  if (approved) return { verdict: 'apply', rule: 'changes.approved', reason: 'the command was approved before it ran' }
  if (level === 'full') return { verdict: 'apply', rule: 'autonomy.full', reason: 'autonomy is full: what nothing forbids is applied' }
  return questions(view, context) ?? { verdict: 'apply', rule: 'changes.harmless', reason: 'every change is harmless' }
}

function dropped(rule: RuleName, reason: string): Decision {
  return { verdict: 'deny', rule, reason }
}

function asking(rule: RuleName, reason: string): Decision {
  return { verdict: 'ask', rule, reason }
}

function refusals(view: ReturnType<typeof createChangeView>, context: ReviewContext): readonly Finding[] {
  const lock = createPathLock(view, context)
  return view.changes.flatMap((change) => {
    const locked = lock(change.path)
    const link = judgeLink(change, { view, context, lock })
    return [...(locked ? [{ ...locked, weight: 'deny', path: change.path } as const] : []), ...(link ? [link] : [])]
  })
}

function questions(view: ReturnType<typeof createChangeView>, { level, hasSecret }: ReviewContext): Decision | undefined {
  const [secret] = hasSecret ? [findSecrets(view, hasSecret)].filter(({ length }) => length > 0) : []
  if (secret) return asking('changes.secret', tellFindings(secret))
  const limit = beyondLimits(view.changes)
  if (limit !== undefined) return asking('changes.limits', limit)
  if (level === 'supervised') return asking('changes.supervised', 'autonomy is supervised: changes to the workspace need a yes')
  const doubts = view.changes.flatMap((change) => askAbout(change, view) ?? [])
  return doubts.length > 0 ? asking('changes.not_harmless', tellFindings(doubts)) : undefined
}

function omissions(changes: readonly Change[]): string {
  const others = changes.filter(({ after }) => after?.kind === 'other')
  const bits = changes.filter(({ before, after }) => ((after?.mode ?? 0) & 0o7000 & ~(before?.mode ?? 0)) !== 0 && after?.kind !== 'link')
  return [
    others.length > 0 ? `; left out: ${grouped(others.length)} of the kinds pipe, socket and device` : '',
    bits.length > 0 ? `; the set-user-ID, set-group-ID and sticky bits of ${count(bits.length, 'path')} are cleared` : '',
  ].join('')
}
