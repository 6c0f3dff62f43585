/**
 * Judges what a command changed in its private view of the workspace, as a whole: apply it, ask a person, or drop it. Nothing is applied
 * in part, because one of several changes without the others leaves a broken state.
 */

import { canonicalText } from '../../kit/json.ts'
import { digest, sha256 } from '../../kit/sha256.ts'
import { count, cut, grouped, visible } from '../../kit/text.ts'
import type { Change, ChangeReview, EntryState } from '../../runtime/changes.ts'
import type { RuleName } from '../rules.ts'
import { isUnder } from '../targets/path.ts'
import { type ChangeView, createChangeView, resolveLink } from './change-view.ts'
import { judgeGitChanges } from './git/git-changes.ts'
import { describeMoves, type GitMoves, isOwnOfGit } from './git-moves.ts'
import { beyondLimits, createHarmlessJudge, findSecrets } from './harmless/harmless.ts'
import { judgeGitMoves } from './harmless/judge-moves.ts'
import { isHiddenSetting } from './harmless/run-unasked.ts'
import { createPathLock, type PathLock } from './locked-paths.ts'
import { type ChangeFinding, describeFindings, type ReviewContext } from './review-context.ts'

type Decision = Pick<ChangeReview, 'verdict' | 'rule' | 'reason' | 'doubts'> & { readonly rule: RuleName | `rule.${string}` }

/**
 * Never throws: in doubt it denies. Two things are left out when the changes are applied, and the reason says so: pipes, sockets and
 * devices (`after.kind` is `other`), and the set-user-ID, set-group-ID and sticky bits of `after.mode`.
 */
export function reviewChanges(changes: readonly Change[], context: ReviewContext): ChangeReview {
  const summary = summariseChanges(changes, context.git)
  const { verdict, rule, reason, doubts } = decideSafely(changes, context)
  const shownReason = cut(reason + omissions(changes), 4_000)
  return { digest: changesDigest(changes), verdict, rule, reason: shownReason, summary, count: changes.length, doubts }
}

/** Tells whether the judgement of now is worse than the one that let the changes through, or that a person answered with yes. */
export function isWorse(now: ChangeReview, then: ChangeReview | undefined): boolean {
  if (now.verdict === 'apply') return false
  return now.verdict === 'deny' || then?.verdict !== 'ask' || now.doubts !== then.doubts
}

/**
 * Returns the changes that every level would refuse, one line each. Never throws: what cannot be judged is refused. An undo is judged this
 * way: it needs no question, because a person asks for it.
 */
export function refusalsOf(changes: readonly Change[], context: ReviewContext): readonly string[] {
  try {
    const denied = findingsOf(changes, context).filter(({ weight }) => weight === 'deny')
    const ruled = context.ruled?.verdict === 'deny' ? [context.ruled.reason] : []
    return [...denied.map((finding) => describeFindings([finding])), ...ruled]
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

function findingsIn(view: ChangeView, context: ReviewContext): readonly ChangeFinding[] {
  const lock = createPathLock(view, context)
  return [...paths(view, context, lock), ...judgeGitChanges(view, context), ...judgeGitMoves(view, { ...context, lock })]
}

function doubtsOf(findings: readonly ChangeFinding[], ruled: string | undefined): string | undefined {
  if (findings.length === 0 && ruled === undefined) return undefined
  return digest([
    ...findings.map(({ weight, rule, path, why }) => `${weight} ${rule} ${path.toWellFormed()} ${why.toWellFormed()}`).sort(),
    ruled ?? '',
  ])
}

function weigh(view: ChangeView, context: ReviewContext, findings: readonly ChangeFinding[]): Decision {
  const denied = findings.filter(({ weight }) => weight === 'deny')
  if (denied[0])
    return dropped(denied[0].rule, `${describeFindings(denied)}. Nothing was applied; leave these paths alone, or ask the operator`)
  const { ruled, approved, level } = context
  if (ruled?.verdict === 'deny') return dropped(ruled.rule, `${ruled.reason}. Nothing was applied`)
  if (ruled) return asking(ruled.rule, findings.length > 0 ? `${ruled.reason}; ${describeFindings(findings)}` : ruled.reason)
  if (level === 'copy') return { verdict: 'apply', rule: 'changes.copy', reason: 'only in the private copy in which this run works' }
  if (approved) return { verdict: 'apply', rule: 'changes.approved', reason: 'the command was approved before it ran' }
  return questions(view, context, findings) ?? harmless(level)
}

/** @returns what the rules say of changes that are in the workspace already, whatever the level */
export function findingsOf(changes: readonly Change[], context: ReviewContext): readonly ChangeFinding[] {
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

function paths(view: ChangeView, context: ReviewContext, lock: PathLock): readonly ChangeFinding[] {
  return view.changes.flatMap((change) => {
    const locked = lock(change.path)
    const link = judgeLink(change, { view, context, lock })
    return [...(locked ? [{ ...locked, path: change.path }] : []), ...(link ? [link] : [])]
  })
}

/** `findings` deny nothing. In full only those that a person must allow ask. */
function questions(view: ChangeView, context: ReviewContext, findings: readonly ChangeFinding[]): Decision | undefined {
  const { level, hasSecret, policy, git } = context
  const personal = findings.filter(({ weight }) => weight === 'person')
  if (personal[0]) return asking(personal[0].rule, describeFindings(personal))
  if (level === 'full') return policy.toolSettings === 'allow' ? undefined : hiddenSettings(view, context)
  const secrets = hasSecret ? findSecrets(view, hasSecret) : []
  if (secrets.length > 0) return asking('changes.secret', describeFindings(secrets))
  const limit = beyondLimits(view.changes, git !== undefined)
  if (limit !== undefined) return asking('changes.limits', limit)
  const { askAbout, isOnlyOutput } = createHarmlessJudge(view, context)
  if (findings.length === 0 && isOnlyOutput(view.changes))
    return {
      verdict: 'apply',
      rule: 'changes.ignored',
      reason: 'git ignores everything that changed, and no program runs or obeys it unasked',
    }
  const details = findings.length > 0 ? `; ${describeFindings(findings)}` : ''
  if (level === 'supervised')
    return asking(findings[0]?.rule ?? 'changes.supervised', `autonomy is supervised: changes to the workspace need a yes${details}`)
  const doubts = [...findings, ...view.changes.flatMap((change) => askAbout(change) ?? [])]
  return doubts[0] && asking(doubts[0].rule, describeFindings(doubts))
}

/**
 * Asks about the configuration of tools and instructions for agents, which would act outside every sandbox without a person having seen
 * them.
 */
function hiddenSettings(view: ChangeView, context: ReviewContext): Decision | undefined {
  const { askAbout } = createHarmlessJudge(view, context)
  const found = view.changes.flatMap((change) => (isHiddenSetting(change.path) && change.after ? (askAbout(change) ?? []) : []))
  return found[0] && asking(found[0].rule, `${describeFindings(found)} (security.tool_settings = "allow" lets full change such files)`)
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
function judgeLink({ path, before, after }: Change, { view, context, lock }: Links): ChangeFinding | undefined {
  if (after?.kind !== 'link' || (before?.kind === 'link' && before.target === after.target)) return
  const deny = (rule: ChangeFinding['rule'], why: string) => ({ weight: 'deny', rule, path, why }) as const
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

/**
 * Computes the digest that names a change set; approvals, receipts and the record are bound to it. It is the SHA-256 of the canonical JSON
 * of the changes, sorted by path, so that the order in which folders were read does not matter. canonical() is not used, because it sorts
 * the members of each object again, which costs half a second for 30,000 changes.
 * @throws TypeError when a text has half a surrogate pair
 */
export function changesDigest(changes: readonly Change[]): string {
  const sorted = changes.toSorted((a, b) => order(a.path, b.path) || order(a.bytes ?? '', b.bytes ?? ''))
  return sha256(`[${sorted.map(change).join(',')}]`)
}

function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

function change({ path, bytes, before, after }: Change): string {
  const members = [
    ...(after === undefined ? [] : [`"after":${state(after)}`]),
    ...(before === undefined ? [] : [`"before":${state(before)}`]),
    ...(bytes === undefined ? [] : [`"bytes":${canonicalText(bytes)}`]),
    `"path":${canonicalText(path)}`,
  ]
  return `{${members.join(',')}}`
}

function state({ kind, mode, sha256, size, target }: EntryState): string {
  const digest = sha256 === undefined ? '' : `,"sha256":${canonicalText(sha256)}`
  const length = size === undefined ? '' : `,"size":${size}`
  const link = target === undefined ? '' : `,"target":${canonicalText(target)}`
  return `{"kind":"${kind}","mode":${mode}${digest}${length}${link}}`
}

type ShownKind = 'changed' | 'new' | 'deleted' | 'renamed' | 'mode changed' | 'touched' | 'left out'

/** One line of a summary or a diff; `from` is the old name of a renamed file. */
type ShownChange = { readonly kind: ShownKind; readonly path: string; readonly from?: string; readonly isFolder: boolean }

const pathsShown = 6

/**
 * Describes a change set in one line for people: "4 files: 2 changed, 1 new, 1 deleted: src/a.ts, …". It names moves in repositories
 * instead of git's own files.
 */
export function summariseChanges(changes: readonly Change[], git: GitMoves = []): string {
  if (changes.length === 0) return 'nothing changed'
  const moves = describeMoves(git).map(({ title }) => title)
  const rest = changes.filter(({ path }) => !isOwnOfGit(path, git))
  const more = moves.length > movesShown ? [`and ${count(moves.length - movesShown, 'more move')}`] : []
  const own = moves.length === 0 && rest.length === 0 ? [`${count(changes.length, 'path')} of git's own`] : []
  return cut(visible([...moves.slice(0, movesShown), ...more, ...own, ...(rest.length > 0 ? [summaryOf(rest)] : [])].join('; ')), 600)
}

const movesShown = 4

function summaryOf(changes: readonly Change[]): string {
  const shown = describeChanges(changes)
  const files = shown.filter(({ isFolder }) => !isFolder)
  const entries = files.length > 0 ? files : shown
  const noun = files.length > 0 ? 'file' : 'folder'
  const paths = entries.slice(0, pathsShown).map(({ path, from }) => (from === undefined ? path : `${from} → ${path}`))
  const more = entries.length > pathsShown ? ', …' : ''
  return `${count(entries.length, noun)}: ${kinds(entries)}: ${paths.join(', ')}${more}`
}

function kinds(shown: readonly ShownChange[]): string {
  const numbers = new Map<ShownKind, number>()
  for (const { kind } of shown) numbers.set(kind, (numbers.get(kind) ?? 0) + 1)
  return [...numbers].map(([kind, number]) => `${grouped(number)} ${kind}`).join(', ')
}

/** A deleted and a new file with the same content are one renamed file; everything else stays one entry per change, in order. */
export function describeChanges(changes: readonly Change[]): readonly ShownChange[] {
  const deleted = deletedByContent(changes)
  const renamed = new Map<string, string>()
  for (const { path, before, after } of changes) {
    const from = before === undefined && isContent(after) ? deleted.get(after.sha256)?.shift() : undefined
    if (from !== undefined) renamed.set(path, from)
  }
  const old = new Set(renamed.values())
  return changes.flatMap((change) => {
    if (change.after === undefined && old.has(change.path)) return []
    const from = change.before === undefined ? renamed.get(change.path) : undefined
    const isFolder = (change.after ?? change.before)?.kind === 'folder'
    return [{ path: change.path, isFolder, ...(from === undefined ? { kind: kindOf(change) } : { kind: 'renamed' as const, from }) }]
  })
}

type Content = EntryState & { readonly sha256: string }

/** Leaves out empty files: they are all alike, so an empty new file does not count as a renamed one. */
function isContent(state: EntryState | undefined): state is Content {
  return state?.kind === 'file' && state.sha256 !== undefined && state.size !== 0
}

function deletedByContent(changes: readonly Change[]): Map<string, string[]> {
  const deleted = new Map<string, string[]>()
  for (const { path, before, after } of changes) {
    if (after !== undefined || !isContent(before)) continue
    const paths = deleted.get(before.sha256)
    if (paths === undefined) deleted.set(before.sha256, [path])
    else paths.push(path)
  }
  return deleted
}

function kindOf({ before, after }: Change): ShownKind {
  if (after === undefined) return 'deleted'
  if (after.kind === 'other') return 'left out'
  if (before === undefined) return 'new'
  if (before.kind !== after.kind || before.size !== after.size || before.target !== after.target) return 'changed'
  if (after.kind === 'file' && (before.sha256 === undefined || before.sha256 !== after.sha256)) return 'changed'
  return before.mode === after.mode ? 'touched' : 'mode changed'
}
