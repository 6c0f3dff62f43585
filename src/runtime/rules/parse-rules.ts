/** Parses a user's rules from a JSON file strictly, and reports all problems at once. */

import { errorText } from '../../kit/errors.ts'
import { isObject, type Json } from '../../kit/json.ts'
import { didYouMean, quote } from '../../kit/text.ts'
import type { Change } from '../changes.ts'
import type { Proposal } from '../event.ts'
import { type Condition, type Places, parseCondition } from './condition.ts'
import { type Matcher, parseMatcher } from './matcher.ts'
import { createReport, knownKeys, type ProblemReport } from './problem.ts'

export type Rule = {
  readonly name: string
  /** The file of the rule. */
  readonly file: string
  /** The rule as written; the journal keeps it for a replay. */
  readonly source: Json
  readonly target: Matcher
  readonly blocks: readonly Blockable[]
  /** The rule applies only after the model requested such a call. */
  readonly after?: Matcher
  /** The rule ends after such a call succeeded. */
  readonly until?: Matcher
  /** This rule lets so many of the calls through. */
  readonly atMost?: number
  /** The rule is about these changes, and blocks or asks only where a call makes one of them. */
  readonly changes?: ChangeMatcher
  /** The rule asks a person about such changes; without it they are dropped. */
  readonly asks?: true
  readonly reason: string
}

const blockable = ['act', 'think', 'apply'] as const
export type Blockable = (typeof blockable)[number]

const keys = ['name', 'on', 'when', 'changes', 'block', 'ask', 'after', 'until', 'atMost', 'reason'] as const

/** These keys need a history of calls; a rule that judges only changes has none. */
const withoutChanges = ['after', 'until', 'atMost'] as const

/** Events that a rule may not block, because refusals, stops and the correct end of a run consist of them. */
const protective = [
  'deny',
  'halt',
  'stalled',
  'finish',
  'cancel',
  'estop',
  'clock',
  'tool.done',
  'approval.decision',
  'gate.open',
  'propose',
  'observe',
]

const MAX_RULES = 200

/** `text` is the content of the file: one rule or a list. If `problems` is not empty, the caller must use none of the file's rules. */
export function parseRules(given: { readonly text: string; readonly file: string; readonly places: Places }): {
  readonly rules: readonly Rule[]
  readonly problems: readonly string[]
} {
  const problems: string[] = []
  const report = createReport(problems, given.file)
  const value = parseJson(given.text, report)
  if (value === undefined) return { rules: [], problems }
  const list = Array.isArray(value) ? value : [value]
  if (list.length > MAX_RULES) report.say(`holds ${list.length} rules; at most ${MAX_RULES} are allowed`)
  const rules = list
    .map((one, at) => parseRule(one, Array.isArray(value) ? report.at(at) : report, given))
    .filter((rule) => rule !== undefined)
  for (const name of repeated(rules)) report.say(`two rules are called "${name}"; rename one`)
  return problems.length > 0 ? { rules: [], problems } : { rules, problems }
}

/** Returns the names that occur more than once. */
export function repeated(rules: readonly { readonly name: string }[]): string[] {
  const names = rules.map(({ name }) => name)
  return [...new Set(names.filter((name, at) => names.indexOf(name) !== at))]
}

function parseJson(text: string, report: ProblemReport): Json | undefined {
  try {
    const value: Json = JSON.parse(text.replace(/^\ufeff/, ''))
    return value
  } catch (error) {
    return report.say(`is not valid JSON: ${errorText(error)}`)
  }
}

function parseRule(
  given: Json,
  report: ProblemReport,
  { file, places }: { readonly file: string; readonly places: Places },
): Rule | undefined {
  if (!isObject(given))
    return report.say(`must be a rule, such as {"name": "no-push", "on": {"type": "propose", "tool": "shell"}}; got ${quote(given)}`)
  const forbidden = ['request', 'allow', 'permit'].filter((key) => Object.hasOwn(given, key))
  for (const key of forbidden) report.say(`"${key}" is not allowed: a rule can only block, never ask for anything or permit it`)
  const rest = Object.fromEntries(Object.entries(given).filter(([key]) => !forbidden.includes(key)))
  const known = knownKeys(rest, keys, report)
  const name = nameOf(given.name, report.at('name'))
  const target = targetOf(given, report, places)
  const blocks = blocksOf(given, report.at('block'))
  const changes = changesOf(given, report, places)
  const [after, until] = [beside(given.after, report.at('after'), places), beside(given.until, report.at('until'), places)]
  const atMost = countOf(given.atMost, report.at('atMost'))
  const reason = reasonOf(given.reason, report.at('reason'))
  if (
    !known ||
    forbidden.length > 0 ||
    !name ||
    !target ||
    !blocks ||
    after === null ||
    until === null ||
    atMost === null ||
    changes === null ||
    reason === undefined
  )
    return undefined
  const text = reason || `a rule of the operator (${file}) does not permit this call; do without it`
  return {
    name,
    file,
    source: given,
    target,
    blocks,
    reason: text,
    ...(after && { after }),
    ...(until && { until }),
    atMost,
    ...(changes && { changes }),
    ...(given.ask === true ? { asks: true } : {}),
  }
}

function nameOf(given: unknown, report: ProblemReport): string | undefined {
  if (typeof given === 'string' && /^[a-z0-9][a-z0-9_-]{0,63}$/.test(given)) return given
  return report.say(`must be 1 to 64 of a–z, 0–9, "-" and "_"; got ${quote(given)}`)
}

function targetOf({ on, when }: { readonly [key: string]: unknown }, report: ProblemReport, places: Places): Matcher | undefined {
  const at = report.at('on')
  if (!isObject(on)) return at.say(`must say which event the rule looks at, such as {"type": "propose", "tool": "shell"}; got ${quote(on)}`)
  const known = knownKeys(on, ['type', 'tool'], at)
  if (on.type !== 'propose')
    return at.at('type').say(`must be "propose", the moment at which the model asks for a call; got ${quote(on.type)}`)
  // Parsed although the rule is already invalid, to report further problems.
  const target = parseMatcher(
    { tool: on.tool, when },
    { ...report, at: (step) => (step === 'tool' ? at.at(step) : report.at(step)) },
    places,
  )
  return known ? target : undefined
}

/** The changes of a call are blocked by blocking that they are applied, and a file tool's call by blocking the call. */
function blocksOf({ block: given, changes }: { readonly [key: string]: unknown }, report: ProblemReport): readonly Blockable[] | undefined {
  const allowed = blockable.filter((type) => (type === 'apply') === (changes !== undefined))
  if (given === undefined) return changes === undefined ? ['act'] : ['act', 'apply']
  if (!Array.isArray(given) || given.length === 0) return report.say(`must be a list of ${allowed.join(', ')}; got ${quote(given)}`)
  const wrong = given.filter((type) => !allowed.some((known) => known === type))
  for (const type of wrong) report.say(wrongBlock(type, allowed))
  if (wrong.length > 0) return undefined
  return changes === undefined ? allowed.filter((type) => given.includes(type)) : ['act', 'apply']
}

function wrongBlock(type: unknown, allowed: readonly Blockable[]): string {
  if (protective.some((one) => one === type))
    return `${quote(type)} may not be blocked: that would weaken the run, not restrict it; allowed: ${allowed.join(', ')}`
  return `${quote(type)} is nothing that can be blocked; allowed: ${allowed.join(', ')}${didYouMean(String(type), allowed)}`
}

/** @returns undefined when absent, null when invalid. */
function changesOf(given: { readonly [key: string]: unknown }, report: ProblemReport, places: Places): ChangeMatcher | null | undefined {
  const { ask, changes, block } = given
  const about = changes === undefined ? undefined : (parseChanges(changes, report.at('changes'), places) ?? null)
  const beside = withoutChanges.filter((key) => changes !== undefined && given[key] !== undefined)
  for (const key of beside) report.at(key).say('does not go with "changes": such a rule holds for every change from the start')
  const wrongAsk = ask !== undefined && (ask !== true || changes === undefined || block !== undefined)
  if (wrongAsk) report.at('ask').say('must be true, stands in the place of "block", and needs "changes"')
  return beside.length > 0 || wrongAsk ? null : about
}

/** @returns undefined when absent, null when invalid. */
function beside(given: unknown, report: ProblemReport, places: Places): Matcher | null | undefined {
  if (given === undefined) return undefined
  if (!isObject(given) || Object.keys(given).length === 0)
    return report.say('must name calls, such as {"tool": "file_read", "when": {"input.path": {"path": "**/.env"}}}') ?? null
  const known = knownKeys(given, ['tool', 'when'], report)
  return (known && parseMatcher({ tool: given.tool, when: given.when }, report, places)) || null
}

function countOf(given: unknown, report: ProblemReport): number | null | undefined {
  if (given === undefined || (typeof given === 'number' && Number.isInteger(given) && given >= 0 && given <= 1000)) return given
  return report.say(`must be a whole number from 0 to 1000; got ${quote(given)}`) ?? null
}

/** Returns an empty text when absent. */
function reasonOf(given: unknown, report: ProblemReport): string | undefined {
  if (given === undefined) return ''
  if (typeof given === 'string' && given.trim() !== '' && given.length <= 1000) return given.trim()
  return report.say(`must be a text of at most 1000 characters that tells the model why; got ${quote(given)}`)
}

/** One change as a rule sees it; `path` is relative to the workspace. */
type ChangeFacts = { readonly path: string; readonly kind: string; readonly change: string }

type ChangeMatcher = ReturnType<typeof matcherOf>

const fields = ['path', 'kind', 'change'] as const
type Field = (typeof fields)[number]

const choices: { readonly [field in Field]?: readonly string[] } = {
  kind: ['file', 'folder', 'link'],
  change: ['created', 'changed', 'deleted'],
}

/** The operations that each file tool may do on the file that it writes. */
const fileTools: { readonly [tool: string]: readonly string[] } = {
  file_write: ['created', 'changed'],
  file_edit: ['changed'],
  file_delete: ['deleted'],
}

/** Every field must hold of the same change. @returns undefined after it reported the problem */
function parseChanges(given: unknown, report: ProblemReport, places: Places): ChangeMatcher | undefined {
  if (!isObject(given) || Object.keys(given).length === 0)
    return report.say(`must say which changes, such as {"path": {"path": "migrations/**"}}; got ${quote(given)}`)
  const parts = Object.entries(given).map(([field, source]) => partOf(field, source, report.at(field), places))
  const known = parts.filter((part) => part !== undefined)
  return known.length === parts.length ? matcherOf(known, places) : undefined
}

type FieldCondition = { readonly field: Field; readonly condition: Condition }

function partOf(name: string, source: unknown, report: ProblemReport, places: Places): FieldCondition | undefined {
  const field = fields.find((one) => one === name)
  if (field === undefined) return report.say(`no such field of a change; allowed: ${fields.join(', ')}${didYouMean(name, fields)}`)
  const condition = parseCondition(source, report, places)
  const allowed = choices[field]
  if (!condition || allowed === undefined || allowed.some((one) => condition.holds(one))) return condition && { field, condition }
  return report.say(`never holds: ${field} is one of ${allowed.join(', ')}${typeof source === 'string' ? didYouMean(source, allowed) : ''}`)
}

function matcherOf(parts: readonly FieldCondition[], { workspace }: Places) {
  const holds = (seen: ChangeFacts) => parts.every(({ field, condition }) => condition.holds(seen[field]))
  const sample = parts.find(({ field }) => field === 'path')?.condition.sample
  // The shortest text of a pattern for everything in a folder is the folder.
  const paths = typeof sample === 'string' ? [sample, `${sample.replace(/\/$/, '')}/a`] : ['sample']
  return {
    matches: ({ path, before, after }: Change) => holds({ path, kind: (after ?? before)?.kind ?? 'file', change: changeOf(before, after) }),
    /** Tells whether the call of a file tool makes such a change. The changes of a command are known only when it has ended. */
    matchesCall: ({ call, judgement }: Proposal): boolean => {
      const changes = Object.hasOwn(fileTools, call.name) ? (fileTools[call.name] ?? []) : []
      const written = judgement.writes.map((one) => (one.startsWith(`${workspace}/`) ? one.slice(workspace.length + 1) : one))
      return written.some((path) => changes.some((change) => holds({ path, kind: 'file', change })))
    },
    /** The calls of file tools that probably match. */
    samples: Object.keys(fileTools).map((name) => ({
      name,
      input: {},
      writes: paths.map((path) => (path.startsWith('/') ? path : `${workspace}/${path}`)),
    })),
  }
}

function changeOf(before: Change['before'], after: Change['after']): string {
  return before === undefined ? 'created' : after === undefined ? 'deleted' : 'changed'
}
