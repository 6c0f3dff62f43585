/** Finds valid rules that can never apply: tools and arguments that do not exist, an `until` that the rule itself prevents. */

import { canonical, isObject, type Json } from '../../kit/json.ts'
import { didYouMean, quote } from '../../kit/text.ts'
import { type Places, parseCondition } from './condition.ts'
import type { Rule } from './parse-rules.ts'
import { createReport, type ProblemReport } from './problem.ts'
import { parseGlob } from './text/glob.ts'
import { compile } from './text/machine.ts'

export type LintOptions = { readonly rules: readonly Rule[]; readonly known: KnownTools; readonly places: Places }

export type KnownTools = {
  readonly builtIn: readonly { readonly name: string; readonly parameters: unknown }[]
  /** Names of the operator's executables, as far as the configuration lists them. */
  readonly own: readonly string[]
  /** Tells whether an executable could have this name. */
  readonly isToolName: (name: string) => boolean
}

/** `problems` are certain mistakes. `warnings` may be correct for executables, whose names and arguments are known only during a run. */
export type Lint = { readonly problems: readonly string[]; readonly warnings: readonly string[] }

type MatcherRole = 'on' | 'after' | 'until'

/** The consequence for the rule if this matcher never matches. */
const consequence: { readonly [role in MatcherRole]: string } = {
  on: 'so the rule never applies',
  after: 'so the rule never begins to hold',
  until: 'so nothing ever ends the rule',
}

export function lintRules({ rules, known, places }: LintOptions): Lint {
  const problems: string[] = []
  const warnings: string[] = []
  for (const { file, name, source } of rules) {
    if (!isObject(source)) continue
    const certain = createReport(problems, `${file}: rule ${quote(name)}`)
    const perhaps = createReport(warnings, `${file}: rule ${quote(name)}`)
    const { on, when, after, until } = source
    const parts = { on: isObject(on) ? { tool: on.tool, when } : undefined, after, until }
    for (const role of ['on', 'after', 'until'] as const) {
      const calls = parts[role]
      if (isObject(calls)) lintCalls({ calls, role, known, places, certain, perhaps })
    }
    if (preventsItsEnd(source, places))
      certain.at('until').say('the rule blocks the very calls that would end it; leave them out of "on" and "when"')
  }
  return { problems, warnings }
}

type Linting = {
  readonly calls: { readonly tool?: unknown; readonly when?: unknown }
  readonly role: MatcherRole
  readonly known: KnownTools
  readonly places: Places
  readonly certain: ProblemReport
  readonly perhaps: ProblemReport
}

function lintCalls(given: Linting): void {
  const { calls, role, known } = given
  const patterns = textsOf(calls.tool)
  const meant = known.builtIn.filter(({ name }) => patterns.length === 0 || patterns.some((pattern) => fits(pattern, name)))
  for (const pattern of patterns) lintTool(pattern, given)
  const closed = patterns.length > 0 && patterns.every((pattern) => known.builtIn.some(({ name }) => name === pattern))
  if (meant.length === 0 || !isObject(calls.when)) return
  for (const [field, source] of Object.entries(calls.when)) {
    const missing = meant.map(({ parameters }) => missingIn(parameters, field))
    if (missing.some((one) => one === undefined)) continue
    const names = [...new Set(missing.flatMap((one) => one?.names ?? []))]
    const where = (closed ? given.certain : given.perhaps).at(role === 'on' ? 'when' : role).at(field)
    const tools =
      meant.length === 1
        ? `${meant[0]?.name} has`
        : `${patterns.length === 0 ? 'the built-in tools' : meant.map(({ name }) => name).join(', ')} have`
    const step = missing[0]?.step ?? field
    const effect = holdsWithout(source, given.places) ? 'so the condition holds for every call' : consequence[role]
    where.say(`${tools} no argument ${quote(step)}, ${effect}${hint(step, names)}`)
  }
}

function lintTool(pattern: string, { role, known, certain, perhaps }: Linting): void {
  const names = known.builtIn.map(({ name }) => name)
  if ([...names, ...known.own].some((name) => fits(pattern, name))) return
  const isPlain = !/[*?[{\\]/.test(pattern)
  const certainly = isPlain && !known.isToolName(pattern)
  const rest = certainly ? `no tool can be called ${quote(pattern)}` : `no built-in tool is called ${quote(pattern)}`
  const end = certainly ? consequence[role] : `${consequence[role]} unless a tool of your own is called that`
  const where = (certainly ? certain : perhaps).at(role).at('tool')
  where.say(`${rest}, ${end}${hint(pattern, [...names, ...known.own])}`)
}

const hint = (word: string, names: readonly string[]) =>
  didYouMean(word, names) || (names.length > 0 ? `; there are: ${names.join(', ')}` : '')

/**
 * Returns the first step of `input.a.b` that a call of this tool cannot have, with the names it can have; undefined when every step is
 * possible.
 */
function missingIn(parameters: unknown, field: string): { readonly step: string; readonly names: readonly string[] } | undefined {
  const [head, ...path] = field.split('.')
  if (head !== 'input') return undefined
  let schema = parameters
  for (const step of path) {
    if (!isObject(schema)) return undefined
    if (typeof schema.type === 'string' && !['object', 'array'].includes(schema.type)) return { step, names: [] }
    const properties = isObject(schema.properties) ? schema.properties : {}
    if (!Object.hasOwn(properties, step))
      return schema.additionalProperties === false ? { step, names: Object.keys(properties) } : undefined
    schema = properties[step]
  }
  return undefined
}

function holdsWithout(source: unknown, places: Places): boolean {
  return parseCondition(source, createReport([], ''), places)?.holds(undefined) === true
}

/** Reports only what is certain: the rule blocks every call that `until` names, from the start and each time. */
function preventsItsEnd(source: { readonly [key: string]: unknown }, places: Places): boolean {
  const { on, when, block, after, until, atMost } = source
  if (!isObject(until) || !isObject(on) || after !== undefined || (atMost !== undefined && atMost !== 0)) return false
  if (Array.isArray(block) && !block.includes('act')) return false
  const [blocked, ending] = [textsOf(on.tool), textsOf(until.tool)]
  const sameTools = blocked.length === 0 || (ending.length > 0 && ending.every((name) => blocked.some((pattern) => covers(pattern, name))))
  const conditions = isObject(until.when) ? until.when : {}
  return sameTools && Object.entries(isObject(when) ? when : {}).every(([field, target]) => implies(conditions[field], target, places))
}

const covers = (pattern: string, name: string) => pattern === name || pattern === '*' || (!/[*?[{\\]/.test(name) && fits(pattern, name))

/**
 * Tells whether every value that fulfils `given` fulfils `target`: both are equal, or `given` lists values and each one fulfils `target`.
 */
function implies(given: unknown, target: unknown, places: Places): boolean {
  if (given === undefined) return false
  if (isJson(given) && isJson(target) && canonical(given) === canonical(target)) return true
  const values = Array.isArray(given) ? given : [given]
  const condition = parseCondition(target, createReport([], ''), places)
  return condition !== undefined && values.every((value) => isScalar(value) && condition.holds(value))
}

const isScalar = (value: unknown): value is Json => value === null || ['string', 'number', 'boolean'].includes(typeof value)
const isJson = (value: unknown): value is Json => isScalar(value) || typeof value === 'object'

const textsOf = (given: unknown) => (Array.isArray(given) ? given : [given]).filter((one) => typeof one === 'string')
const fits = (pattern: string, name: string) => compile(parseGlob(pattern))(name)
