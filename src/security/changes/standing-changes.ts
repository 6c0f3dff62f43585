/** Defines the standing answers to changes: this command, or anything in this workspace, may change these paths without a question. */

import { canonical, isObject, parseJson } from '../../kit/json.ts'
import type { Change, ChangeReview } from '../../runtime/changes.ts'
import { alwaysKey } from '../always.ts'
import type { Plan } from '../plan.ts'
import { isRunUnasked } from './harmless/run-unasked.ts'

/**
 * `command` is the key of an executable and sub-command, or the exact command; that of a workspace stands for whatever writes there. A
 * pattern is a path, or `folder/**` for everything in the folder.
 */
export type ChangeRule = { readonly command: string; readonly patterns: readonly string[] }

/** The name under which the store keeps these rules, beside those of tools. */
export const changeRuleTool = 'changes'

const mostPatterns = 12

/** @returns the key of a call's command; undefined for a call without exactly one command, and for one with network or without a view */
export function changeKeyOf({ always, commands }: Pick<Plan, 'always' | 'commands'>): string | undefined {
  const [command, ...more] = commands
  if (!command || more.length > 0 || command.network !== undefined || command.view === 'direct') return
  if (always) return alwaysKey(always)
  const { plan, cwd } = command
  return JSON.stringify({ cwd, exactly: plan.kind === 'argv' ? [plan.executable, ...plan.argv.slice(1)] : plan.script })
}

/** @returns the rule that "always" would create for these changes; undefined where some of them must always be asked about */
export function changeRuleFor(plan: Pick<Plan, 'always' | 'commands'>, changes: readonly Change[]): ChangeRule | undefined {
  const command = changeKeyOf(plan)
  if (command === undefined || changes.length === 0 || !changes.every(isPlain)) return
  const patterns = patternsOf(changes)
  return patterns && { command, patterns }
}

const keyOfWorkspace = (workspace: string) => canonical({ workspace })

/** @returns the rule that "always" would create where these paths asked for themselves; undefined when they are too many to read */
export function pathRuleFor(workspace: string, paths: readonly string[]): ChangeRule | undefined {
  if (paths.length > 0 && paths.length <= mostPatterns) return { command: keyOfWorkspace(workspace), patterns: paths }
}

/** @returns whether a person said "always" to this very path of the workspace */
export function answeredBy(rules: readonly ChangeRule[], workspace: string): (path: string) => boolean {
  const paths = new Set(rules.flatMap(({ command, patterns }) => (command === keyOfWorkspace(workspace) ? patterns : [])))
  return (path) => paths.has(path)
}

/** Single paths; where they are too many, the folders at the highest depth at which the patterns are few enough. */
function patternsOf(changes: readonly Change[]): readonly string[] | undefined {
  const paths = changes.filter(({ before, after }) => (after ?? before)?.kind === 'file').map(({ path }) => path)
  const all = paths.length > 0 ? paths : changes.map(({ path }) => path)
  const depths = Math.max(...all.map((path) => path.split('/').length))
  for (let depth = depths; depth >= 1; depth--) {
    const patterns = [...new Set(all.map((path) => shortened(path, depth)))].sort()
    if (patterns.length <= mostPatterns && !patterns.includes('/**')) return patterns
  }
}

function shortened(path: string, depth: number): string {
  const parts = path.split('/')
  return parts.length <= depth ? path : `${parts.slice(0, depth).join('/')}/**`
}

/**
 * Tells whether the rule answers the question of this review: it is the question that supervised asks about any change, the command is the
 * rule's, and it changed nothing but the rule's paths. What tools run unasked, links and new executables stay questions.
 */
export function coversChanges(
  rule: ChangeRule,
  { plan, changes, review }: { plan: Pick<Plan, 'always' | 'commands'>; changes: readonly Change[]; review: ChangeReview },
): boolean {
  if (review.verdict !== 'ask' || review.rule !== 'changes.supervised' || changes.length === 0) return false
  if (changeKeyOf(plan) !== rule.command) return false
  return changes.every((change) => isPlain(change) && rule.patterns.some((pattern) => allows(pattern, change)))
}

function isPlain({ path, bytes, before, after }: Change): boolean {
  const kinds = [before?.kind, after?.kind].filter((kind) => kind !== undefined)
  if (bytes !== undefined || !kinds.every((kind) => kind === 'file' || kind === 'folder')) return false
  const hadBits = before?.kind === after?.kind ? (before?.mode ?? 0) : 0
  const runs = after?.kind === 'file' && (after.mode & 0o111 & ~hadBits) !== 0
  return !runs && (/^(?:\.git)?\//.test(path) || !isRunUnasked(after?.kind === 'file' || before?.kind === 'file' ? path : `${path}/`))
}

/** A rule for `a/b/**` also lets the command make `a` and `a/b`. */
function allows(pattern: string, { path, before, after }: Change): boolean {
  const folder = pattern.endsWith('/**') ? pattern.slice(0, -3) : undefined
  if (path === (folder ?? pattern) || (folder !== undefined && path.startsWith(`${folder}/`))) return true
  return (after ?? before)?.kind === 'folder' && pattern.startsWith(`${path}/`)
}

/** @returns the one line under which the rule is stored, listed and revoked */
export function changeRuleText({ command, patterns }: ChangeRule): string {
  return canonical({ command, patterns: [...patterns] })
}

/** @returns undefined for text that is not a rule, so that an edited store allows nothing */
export function parseChangeRule(text: string): ChangeRule | undefined {
  const value = parseJson(text)
  if (!isObject(value) || typeof value.command !== 'string' || !Array.isArray(value.patterns)) return
  const patterns = value.patterns.filter((one) => typeof one === 'string' && /^(?!\/?\*\*)[^\0]+$/.test(one))
  return patterns.length === value.patterns.length ? { command: value.command, patterns } : undefined
}

/** @returns the rule as a person reads it: `git commit, while it changes only .git/**` */
export function tellChangeRule({ command, patterns }: ChangeRule): string {
  const key = parseJson(command)
  if (isObject(key) && typeof key.workspace === 'string') return `any change of ${patterns.join(', ')} in ${key.workspace}`
  const exactly = isObject(key) ? key.exactly : key
  const words = Array.isArray(exactly) ? exactly.join(' ') : String(exactly)
  return `${words}, while it changes only ${patterns.join(', ')}`
}
