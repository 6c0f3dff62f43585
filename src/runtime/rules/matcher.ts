/** Parses which calls a rule matches: a tool by name, and conditions on its fields. */

import { isJsonObject, isObject, type Json, type JsonObject } from '../../kit/json.ts'
import { didYouMean, quote } from '../../kit/text.ts'
import type { Proposal } from '../event.ts'
import { type Condition, type Places, parseCondition } from './condition.ts'
import type { ProblemReport } from './problem.ts'

/** A call that a rule matches, for the model checker. */
export type SampleCall = { readonly name: string; readonly input: JsonObject } & Partial<
  Pick<Proposal['judgement'], 'verdict' | 'risk' | 'rule' | 'summary' | 'writes'>
>

/** `sample` is absent when the parser found no matching call. */
export type Matcher = { readonly matches: (proposal: Proposal) => boolean; readonly sample?: SampleCall }

type FieldCondition = { readonly field: string; readonly condition: Condition }

/**
 * `tool` is a name, a glob or a list; absent means any tool. Every field of `when` must hold. @returns undefined after it reported the
 * problem.
 */
export function parseMatcher(
  given: { readonly tool?: unknown; readonly when?: unknown },
  report: ProblemReport,
  places: Places,
): Matcher | undefined {
  const tool = given.tool === undefined ? [] : toolPart(given.tool, report.at('tool'), places)
  const when = given.when === undefined ? [] : whenParts(given.when, report.at('when'), places)
  if (tool === undefined || when === undefined) return undefined
  const parts = [...tool, ...when]
  const matches = (proposal: Proposal) => parts.every(({ field, condition }) => condition.holds(fieldOf(proposal, field)))
  const sample = sampleOf(parts)
  return matches(proposalOf(sample)) ? { matches, sample } : { matches }
}

function toolPart(given: unknown, report: ProblemReport, places: Places): FieldCondition[] | undefined {
  const names = Array.isArray(given) ? given : [given]
  if (!names.every((name) => typeof name === 'string' && name !== ''))
    return report.say(`must be the name of a tool, a glob or a list of them; got ${quote(given)}`)
  const condition = parseCondition(
    names.map((name) => ({ glob: name })),
    report,
    places,
  )
  return condition && [{ field: 'tool', condition }]
}

function whenParts(given: unknown, report: ProblemReport, places: Places): FieldCondition[] | undefined {
  if (!isObject(given) || Object.keys(given).length === 0)
    return report.say('must name at least one field of the call, such as {"input.path": {"path": "**/.env"}}')
  const parts = Object.entries(given).map(([field, source]) => partOf(field, source, report.at(field), places))
  const known = parts.filter((part) => part !== undefined)
  return known.length === parts.length ? known : undefined
}

function partOf(field: string, source: unknown, report: ProblemReport, places: Places): FieldCondition | undefined {
  if (!isField(field)) {
    const meant = isField(`input.${field}`) ? `; an argument of the call is written "input.${field}"` : ''
    return report.say(`no such field; allowed: ${fields.join(', ')}, input.NAME${didYouMean(field, fields) || meant}`)
  }
  const condition = parseCondition(source, report, places)
  const allowed = choices[field]
  if (!condition || allowed === undefined || allowed.some((one) => condition.holds(one))) return condition && { field, condition }
  return report.say(`never holds: ${field} is one of ${allowed.join(', ')}${typeof source === 'string' ? didYouMean(source, allowed) : ''}`)
}

function sampleOf(parts: readonly FieldCondition[]): SampleCall {
  const values = parts.map(({ field, condition }) => ({ path: field.split('.'), value: valueFor(field, condition) }))
  const whole = values.reduce<JsonObject>((object, { path, value }) => put(object, path, value), { tool: 'any_tool', input: {} })
  const { tool, input, verdict, risk, rule, summary, writes } = whole
  const text = (value: Json | undefined) => (typeof value === 'string' ? value : undefined)
  return {
    name: text(tool) ?? '',
    input: isJsonObject(input) ? input : {},
    verdict: oneOf(verdict, ['ask', 'deny']) ?? 'allow',
    risk: oneOf(risk, ['medium', 'high']) ?? 'low',
    rule: text(rule) ?? 'sample',
    summary: text(summary) ?? 'sample',
    writes: Array.isArray(writes)
      ? writes.filter((path) => typeof path === 'string')
      : text(writes) === undefined
        ? []
        : [text(writes) ?? ''],
  }
}

function valueFor(field: string, { holds, sample }: Condition): Json {
  return choices[field]?.find((one) => holds(one)) ?? sample ?? 'sample'
}

function put(object: JsonObject, [head = '', ...path]: readonly string[], value: Json): JsonObject {
  if (path.length === 0) return { ...object, [head]: value }
  const inner = object[head]
  return { ...object, [head]: put(isJsonObject(inner) ? inner : {}, path, value) }
}

function oneOf<T extends string>(value: Json | undefined, allowed: readonly T[]): T | undefined {
  return allowed.find((one) => one === value)
}

/** @returns the call as the gate would let it through */
export function proposalOf({ name, input, ...rest }: SampleCall): Proposal {
  const judgement = { verdict: 'allow', risk: 'low', rule: '', reason: '', plan: '', summary: '', writes: [], ...rest } as const
  return { call: { id: 'sample', name, input }, judgement }
}

/** In addition to these, `input` and every `input.name.deeper`. */
const fields = ['tool', 'risk', 'verdict', 'rule', 'summary', 'writes', 'input'] as const

/** The allowed values of fields that have a fixed set. */
const choices: { readonly [field: string]: readonly string[] } = { risk: ['low', 'medium', 'high'], verdict: ['allow', 'ask', 'deny'] }

function isField(name: string): boolean {
  return fields.some((field) => field === name) || /^input(\.[^.]+)+$/.test(name)
}

/** Returns undefined when the call has no such field. */
function fieldOf({ call, judgement }: Proposal, name: string): Json | undefined {
  const [head = '', ...path] = name.split('.')
  const whole: { readonly [field in (typeof fields)[number]]: Json } = { ...judgement, tool: call.name, input: call.input }
  return path.reduce<Json | undefined>(memberOf, memberOf(whole, head))
}

function memberOf(value: Json | undefined, key: string): Json | undefined {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined
  return Object.entries(value).find(([name]) => name === key)?.[1]
}
