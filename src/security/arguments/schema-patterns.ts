/**
 * Bounds the regular expressions of a tool's schema, which foreign tools bring: they match in linear time, on a limited amount of text. The
 * schema library would run them with backtracking, so it gets harmless expressions in their place.
 */

import { isObject, type Json } from '../../kit/json.ts'
import { quote } from '../../kit/text.ts'
import type { Matcher } from '../../runtime/rules/text/machine.ts'
import { type Node, only } from '../../runtime/rules/text/machine.ts'
import { matcherOf } from '../../runtime/rules/text/regex.ts'

/** Characters times steps that all expressions may cost for one call, about 0.2 s; and the longest text that one of them reads. */
const MOST_WORK = 2_000_000
export const LONGEST_TEXT = 100_000

/** As in JSON Schema, the dot does not match a line break. */
const dot: Node = { type: 'set', ranges: ['\n', '\r', '\u2028', '\u2029'].map(only), negated: true }

const namesToSchemas = ['properties', 'patternProperties', '$defs', 'definitions']
const data = ['enum', 'const', 'default', 'examples']

/** @returns a sentence about the first expression that cannot be bounded */
export function patternFlaw(schema: unknown): string | undefined {
  const patterns = compiled(schema)
  return typeof patterns === 'string' ? patterns : undefined
}

/** `original` returns the expression that one in an issue stands for. */
export type Bounded = { for(input: Json): unknown; original(pattern: string): string }

/**
 * `for` returns the schema for an input: each expression matches exactly those texts of the input that the original one matches. @returns
 * undefined for a schema without expressions @throws for one that cannot be bounded
 */
export function boundPatterns(schema: unknown): Bounded | undefined {
  const patterns = compiled(schema)
  if (typeof patterns === 'string') throw new Error(patterns)
  const sources = [...patterns.keys()]
  if (sources.length === 0) return undefined
  return {
    for(input) {
      const matched = matchedBy(patterns, textsOf(input))
      return replaced(schema, (source) => {
        const texts = matched.get(source) ?? []
        return `(?:${texts.length === 0 ? '' : `^(?:${texts.map(escaped).join('|')})$|`}(?!)${sources.indexOf(source)})`
      })
    },
    original: (pattern) => sources[Number(/\(\?!\)(\d+)\)\/$/.exec(pattern)?.[1])] ?? pattern,
  }
}

function compiled(schema: unknown): ReadonlyMap<string, Matcher> | string {
  const patterns = new Map<string, Matcher | string>()
  replaced(schema, (source) => {
    if (!patterns.has(source)) patterns.set(source, matcherOf(source, dot))
    return source
  })
  const [flaw] = [...patterns].filter(([, matches]) => typeof matches === 'string')
  if (flaw) return `the expression ${quote(flaw[0])} cannot be used: ${flaw[1]}`
  return new Map([...patterns].flatMap(([source, matches]) => (typeof matches === 'string' ? [] : [[source, matches] as const])))
}

/** Copies the schema with other expressions. What the schema library takes for text, also a number or a list, counts as an expression. */
function replaced(schema: unknown, by: (source: string) => string): unknown {
  if (Array.isArray(schema)) return schema.map((each) => replaced(each, by))
  if (!isObject(schema)) return schema
  return Object.fromEntries(
    Object.entries(schema).map(([key, value]) => {
      if (key === 'pattern') return [key, by(String(value))]
      if (!namesToSchemas.includes(key) || !isObject(value)) return [key, data.includes(key) ? value : replaced(value, by)]
      const named = Object.entries(value).map(([name, each]) => [key === 'patternProperties' ? by(name) : name, replaced(each, by)])
      return [key, Object.fromEntries(named)]
    }),
  )
}

/** Matches the shortest texts first. No expression matches a text that would cost too much, so one long text affects only itself. */
function matchedBy(patterns: ReadonlyMap<string, Matcher>, texts: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const matched = new Map<string, string[]>([...patterns.keys()].map((source) => [source, []]))
  let left = MOST_WORK
  for (const text of texts.filter(({ length }) => length <= LONGEST_TEXT).toSorted((a, b) => a.length - b.length))
    for (const [source, matches] of patterns) {
      left -= (text.length + 1) * matches.steps
      if (left < 0) return matched
      if (matches(text)) matched.get(source)?.push(text)
    }
  return matched
}

/** Returns each text of the input once, names of members too. */
function textsOf(input: Json): readonly string[] {
  const texts = new Set<string>()
  const waiting: unknown[] = [input]
  for (const value of waiting) {
    if (typeof value === 'string') texts.add(value)
    else if (Array.isArray(value)) for (const each of value) waiting.push(each)
    else if (isObject(value)) for (const each of Object.entries(value).flat()) waiting.push(each)
  }
  return [...texts]
}

function escaped(text: string): string {
  return text.replace(/[^A-Za-z0-9]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
