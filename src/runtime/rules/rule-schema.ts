/** Parses the supported subset of JSON Schema for one field; an unknown keyword is an error, so that no keyword is silently ignored. */

import { canonical, isObject, type Json } from '../../kit/json.ts'
import { quote } from '../../kit/text.ts'
import { knownKeys, type Report } from './problem.ts'
import { matcherOf } from './text/regex.ts'

export type Fits = (value: Json) => boolean

/** Parses one keyword; returns undefined after it reported a problem. */
type Keyword = (given: unknown, report: Report, depth: number) => Fits | undefined

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

/** @returns undefined after it reported every problem. */
export function parseSchema(schema: unknown, report: Report, depth = 0): Fits | undefined {
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

export function regexOf(source: string, report: Report): ((text: string) => boolean) | undefined {
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
