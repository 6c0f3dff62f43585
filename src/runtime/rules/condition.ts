/** Parses what a rule requires of one field: a value, a list of values, a glob, a path, a regex, a JSON Schema, or the negation of one. */

import { join, normalize } from 'node:path'
import { canonical, isObject, type Json } from '../../kit/json.ts'
import { quote } from '../../kit/text.ts'
import { knownKeys, type ProblemReport } from './problem.ts'
import { parseGlob, parsePathGlob } from './text/glob.ts'
import { type CodePoints, compile, type Node, PatternError } from './text/machine.ts'
import { matcherOf, parseRegex } from './text/regex.ts'

/** The absolute folders against which paths in rules and in calls resolve. */
export type Places = { readonly workspace: string; readonly home: string }

/**
 * `sample` is a value that probably fulfils the condition; the caller has to check it. Undefined stands for a field that the call lacks.
 */
export type Condition = {
  readonly holds: (value: Json | undefined) => boolean
  readonly sample?: Json
  /** The condition tests a list as a whole; every other condition holds for a list if it holds for one of its members. */
  readonly whole?: true
}

/** A longer text is not searched: the condition counts as fulfilled, negated or not, so that length cannot bypass a rule. */
export const MAX_TEXT = 100_000

const kinds = ['glob', 'path', 'regex', 'schema', 'not'] as const

export function parseCondition(given: unknown, report: ProblemReport, places: Places): Condition | undefined {
  const found = parseAny(given, report, places, 0)
  return found && { ...found, holds: (value) => tooLong(value) || found.holds(value) }
}

function parseAny(given: unknown, report: ProblemReport, places: Places, depth: number): Condition | undefined {
  if (Array.isArray(given)) return anyOf(given, report, places, depth)
  if (!isObject(given))
    return isScalar(given) ? equal(given) : report.say(`must be a value, a list or one of ${kinds.join(', ')}; got ${quote(given)}`)
  if (!knownKeys(given, kinds, report)) return undefined
  const [[kind, value] = [], ...others] = Object.entries(given)
  if (kind === undefined || others.length > 0)
    return report.say(`needs exactly one of ${kinds.join(', ')}; to ask for several things at once write several rules or fields`)
  return parseKind({ kind, value, report: report.at(kind), places, depth })
}

type ConditionSource = {
  readonly kind: string
  readonly value: unknown
  readonly report: ProblemReport
  readonly places: Places
  readonly depth: number
}

function parseKind({ kind, value, report, places, depth }: ConditionSource): Condition | undefined {
  if (kind === 'not') return depth > 5 ? report.say('"not" is nested too deep') : opposite(parseAny(value, report, places, depth + 1))
  if (kind === 'schema') return schema(value, report)
  if (typeof value !== 'string') return report.say(`must be a text; got ${quote(value)}`)
  try {
    if (kind === 'path') return path(value, places)
    return overText(kind === 'glob' ? parseGlob(value) : parseRegex(value))
  } catch (error) {
    if (error instanceof PatternError) return report.say(error.message)
    throw error
  }
}

function anyOf(given: readonly unknown[], report: ProblemReport, places: Places, depth: number): Condition | undefined {
  if (given.length === 0) return report.say('an empty list is never fulfilled; name the values')
  if (depth > 5) return report.say('lists are nested too deep')
  const options = given.map((one, at) => parseAny(one, report.at(at), places, depth + 1))
  const known = options.filter((one) => one !== undefined)
  if (known.length < options.length) return undefined
  return { holds: (value) => known.some(({ holds }) => holds(value)), sample: known[0]?.sample }
}

function equal(literal: null | boolean | number | string): Condition {
  return { holds: some((value) => value === literal), sample: literal }
}

/** A missing field fulfils the negation, so that its rule blocks. A list fulfils it if the inner condition fails for one member. */
function opposite(inner: Condition | undefined): Condition | undefined {
  if (inner === undefined) return undefined
  const holds: Condition['holds'] = inner.whole
    ? (value) => !inner.holds(value)
    : (value) => value === undefined || someOf(value, (one) => !inner.holds(one))
  const sample = ['other', 'a/b', '', 0, true, null].find(holds)
  return { holds, sample, whole: inner.whole }
}

function schema(given: unknown, report: ProblemReport): Condition | undefined {
  const fits = parseSchema(given, report)
  if (fits === undefined) return undefined
  const tried: readonly Json[] = [...named(given), 'text', 0, true, null, [], {}]
  const sample = tried.find(fits)
  return { holds: (value) => value !== undefined && fits(value), whole: true, sample }
}

/** Returns the values that a schema itself names, as far as they are easy to find. */
function named(given: unknown): Json[] {
  if (!isObject(given)) return []
  const own = [given.const, ...(Array.isArray(given.enum) ? given.enum : []), given.minimum, given.maximum].filter(isScalar)
  const texts = typeof given.pattern === 'string' ? [witness(parseRegex(given.pattern))] : []
  const lengths = typeof given.minLength === 'number' ? ['x'.repeat(Math.min(given.minLength, MAX_TEXT))] : []
  if (!isObject(given.properties)) return [...own, ...texts, ...lengths]
  const members = Object.entries(given.properties).map(([name, schema]): [string, Json] => [name, named(schema)[0] ?? 'text'])
  return [...own, Object.fromEntries(members)]
}

function overText(pattern: Node): Condition {
  const matches = compile(pattern)
  return { holds: some((value) => matches(textOf(value))), sample: witness(pattern) }
}

/** Makes both sides absolute and removes `.`, `..` and double slashes. It does not follow links: the gate does that. */
function path(glob: string, places: Places): Condition {
  if (glob.split('/').includes('..')) throw new PatternError(`".." is not allowed in a path glob; name the folder, or start with "**/"`)
  if (glob.startsWith('{')) throw new PatternError('a path glob cannot begin with braces; write a list of paths')
  if (glob.endsWith('/')) throw new PatternError(`a path has no "/" at its end; write "${glob}**" for everything in the folder`)
  const pattern = anchoredPath(glob.replace(/^(\.\/+)+/, ''), places)
  const matches = compile(pattern)
  return { holds: some((value) => matches(absolute(textOf(value), places))), sample: witness(pattern) }
}

function anchoredPath(glob: string, { workspace, home }: Places): Node {
  if (glob.startsWith('/') || glob.startsWith('**')) return parsePathGlob(glob)
  if (glob.startsWith('~/')) return parsePathGlob(glob.slice(2), withSlash(home))
  return parsePathGlob(glob, withSlash(workspace))
}

function absolute(text: string, { workspace, home }: Places): string {
  const rooted = text === '~' || text.startsWith('~/') ? join(home, text.slice(1)) : text.startsWith('/') ? text : join(workspace, text)
  return normalize(rooted).replace(/(?<=.)\/+$/, '')
}

const withSlash = (folder: string) => `${folder.replace(/\/+$/, '')}/`

/** Holds for a list if it holds for one of its members. */
function some(test: (value: Json) => boolean): Condition['holds'] {
  return (value) => value !== undefined && someOf(value, test)
}

function someOf(value: Json, test: (value: Json) => boolean): boolean {
  return Array.isArray(value) ? value.some(test) : test(value)
}

function textOf(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function tooLong(value: Json | undefined): boolean {
  return value !== undefined && (typeof value === 'string' ? value : JSON.stringify(value)).length > MAX_TEXT
}

function isScalar(value: unknown): value is null | boolean | number | string {
  return value === null || ['boolean', 'number', 'string'].includes(typeof value)
}

const liked: readonly CodePoints[] = [
  [97, 122],
  [48, 57],
  [65, 90],
  [32, 126],
]

/** Marks a word boundary until the characters on both sides are known. */
const EDGE = '\ue000'

/** Returns a short text that a pattern probably matches, for testing rules. It is only a guess: the caller must check that it matches. */
export function witness(node: Node): string {
  return guess(node).replace(/\ue000+/g, (_edge, at: number, text: string) =>
    isEdge(text.slice(0, at), text.slice(at).replaceAll(EDGE, '')) ? '' : ' ',
  )
}

function isEdge(left: string, right: string): boolean {
  return /\w$/.test(left) !== /^\w/.test(right)
}

function guess(node: Node): string {
  if (node.type === 'set') return String.fromCodePoint(member(node.ranges, node.negated))
  if (node.type === 'all') return node.items.map(guess).join('')
  if (node.type === 'one') return node.options.map(guess).reduce((best, text) => (text.length < best.length ? text : best))
  if (node.type === 'repeat') return guess(node.item).repeat(node.least)
  return node.place === 'edge' ? EDGE : ''
}

function member(ranges: readonly CodePoints[], negated: boolean): number {
  if (!negated) return ranges[0]?.[0] ?? 0
  const outside = (code: number) => !ranges.some(([from, to]) => code >= from && code <= to)
  const free = liked.flatMap(([from, to]) => Array.from({ length: to - from + 1 }, (_, at) => from + at)).find(outside)
  return free ?? Math.min(0x10ffff, Math.max(0, ...ranges.map(([, to]) => to)) + 1)
}

type Fits = (value: Json) => boolean

/** Parses one keyword; returns undefined after it reported a problem. */
type Keyword = (given: unknown, report: ProblemReport, depth: number) => Fits | undefined

const MAX_DEPTH = 20

const types: { readonly [name: string]: Fits } = {
  null: (value) => value === null,
  boolean: (value) => typeof value === 'boolean',
  integer: (value) => Number.isInteger(value),
  number: (value) => typeof value === 'number',
  string: (value) => typeof value === 'string',
  array: (value) => Array.isArray(value),
  object: (value) => isObject(value),
}

const keywords: { readonly [keyword: string]: Keyword } = {
  type: (given, report) => {
    const names = Array.isArray(given) ? given : [given]
    if (!names.every((name) => typeof name === 'string' && Object.hasOwn(types, name)))
      return report.say(`must be of ${Object.keys(types).join(', ')}; got ${quote(given)}`)
    return (value) => names.some((name) => types[String(name)]?.(value))
  },
  const: (given) => (value) => canonical(value) === canonical(given),
  enum: (given, report) => {
    if (!Array.isArray(given)) return report.say('must be a list of values')
    const texts = given.map((one) => canonical(one))
    return (value) => texts.includes(canonical(value))
  },
  minimum: bound((value, limit) => typeof value !== 'number' || value >= limit),
  maximum: bound((value, limit) => typeof value !== 'number' || value <= limit),
  minLength: bound((value, limit) => typeof value !== 'string' || value.length >= limit),
  maxLength: bound((value, limit) => typeof value !== 'string' || value.length <= limit),
  minItems: bound((value, limit) => !Array.isArray(value) || value.length >= limit),
  maxItems: bound((value, limit) => !Array.isArray(value) || value.length <= limit),
  pattern: (given, report) => {
    const matches = typeof given === 'string' ? regexOf(given, report) : report.say('must be a text')
    return matches && ((value) => typeof value !== 'string' || matches(value))
  },
  required: (given, report) => {
    if (!Array.isArray(given) || !given.every((name) => typeof name === 'string')) return report.say('must be a list of names')
    return (value) => !isObject(value) || given.every((name) => Object.hasOwn(value, name))
  },
  properties: (given, report, depth) => {
    if (!isObject(given)) return report.say('must be an object of schemas')
    const members = Object.entries(given).map(([name, schema]) => [name, parseSchema(schema, report.at(name), depth)] as const)
    return (value) =>
      !isObject(value) || members.every(([name, fits]) => !Object.hasOwn(value, name) || fits?.(json(value[name])) !== false)
  },
  additionalProperties: (given, report) => (typeof given === 'boolean' ? () => true : report.say('must be true or false')),
  items: (given, report, depth) => {
    const fits = parseSchema(given, report, depth)
    return fits && ((value) => !Array.isArray(value) || value.every(fits))
  },
  contains: (given, report, depth) => {
    const fits = parseSchema(given, report, depth)
    return fits && ((value) => !Array.isArray(value) || value.some(fits))
  },
  not: (given, report, depth) => {
    const fits = parseSchema(given, report, depth)
    return fits && ((value) => !fits(value))
  },
  allOf: several((count, all) => count === all),
  anyOf: several((count) => count > 0),
  oneOf: several((count) => count === 1),
}

/**
 * Parses the supported subset of JSON Schema for one field; an unknown keyword is an error, so that no keyword is silently ignored.
 * @returns undefined after it reported every problem
 */
function parseSchema(schema: unknown, report: ProblemReport, depth = 0): Fits | undefined {
  if (typeof schema === 'boolean') return () => schema
  if (!isObject(schema)) return report.say('must be a JSON Schema: an object, true or false')
  if (depth > MAX_DEPTH) return report.say(`schemas are nested more than ${MAX_DEPTH} deep`)
  const known = knownKeys(schema, Object.keys(keywords), report)
  const parts = Object.entries(schema).flatMap(([name, given]) =>
    Object.hasOwn(keywords, name) ? [keywords[name]?.(given, report.at(name), depth + 1)] : [],
  )
  const closed = schema.additionalProperties === false ? onlyThese(schema.properties) : undefined
  if (!known || parts.includes(undefined)) return undefined
  return (value) => parts.every((fits) => fits?.(value)) && (closed?.(value) ?? true)
}

function regexOf(source: string, report: ProblemReport): ((text: string) => boolean) | undefined {
  const matches = matcherOf(source)
  return typeof matches === 'string' ? report.say(matches) : matches
}

function onlyThese(properties: unknown): Fits {
  const names = isObject(properties) ? Object.keys(properties) : []
  return (value) => !isObject(value) || Object.keys(value).every((name) => names.includes(name))
}

function bound(holds: (value: Json, limit: number) => boolean): Keyword {
  return (given, report) =>
    typeof given === 'number' ? (value) => holds(value, given) : report.say(`must be a number; got ${quote(given)}`)
}

function several(enough: (count: number, all: number) => boolean): Keyword {
  return (given, report, depth) => {
    if (!Array.isArray(given) || given.length === 0) return report.say('must be a list of schemas')
    const parts = given.map((schema, at) => parseSchema(schema, report.at(at), depth))
    if (parts.includes(undefined)) return undefined
    return (value) => enough(parts.filter((fits) => fits?.(value)).length, parts.length)
  }
}

/** Narrows a value that was parsed from JSON; a missing member reads as null. */
function json(value: unknown): Json {
  return isJson(value) ? value : null
}

function isJson(value: unknown): value is Json {
  return value !== undefined
}
