/**
 * Bounds the regular expressions of a tool's schema, which foreign tools bring: they match in linear time, on a limited amount of text. The
 * schema library would run them with backtracking, so it gets harmless expressions in their place.
 */

import { isObject, type Json } from '../../kit/json.ts'
import { quote } from '../../kit/text.ts'
import { compile, type Matcher } from '../../runtime/rules/text/machine.ts'
import { type Node, PatternError } from '../../runtime/rules/text/node.ts'
import { parseRegex } from '../../runtime/rules/text/regex.ts'

/** Characters times steps that all expressions may cost for one call, about 0.2 s; and the longest text that one of them reads. */
const MOST_WORK = 2_000_000
export const LONGEST_TEXT = 100_000

/** As in JSON Schema, the dot does not match a line break. */
const dot: Node = {
  type: 'set',
  ranges: [
    [10, 10],
    [13, 13],
    [0x2028, 0x2029],
  ],
  negated: true,
}

const namesToSchemas = ['properties', 'patternProperties', '$defs', 'definitions']
const data = ['enum', 'const', 'default', 'examples']

/** @returns a sentence about the first expression that cannot be bounded */
export function patternFlaw(schema: unknown): string | undefined {
  try {
    compiled(schema)
  } catch (error) {
    if (error instanceof PatternError) return error.message
    throw error
  }
}

export type Bounded = {
  /** Returns the schema for this input: each expression matches exactly those texts of the input that the original one matches. */
  for(input: Json): unknown
  /** Returns the original of an expression in an issue. */
  original(pattern: string): string
}

/** @returns undefined for a schema without expressions @throws PatternError for one that cannot be bounded */
export function boundPatterns(schema: unknown): Bounded | undefined {
  const patterns = compiled(schema)
  if (patterns.size === 0) return undefined
  const sources = [...patterns.keys()]
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

function compiled(schema: unknown): ReadonlyMap<string, Matcher> {
  const patterns = new Map<string, Matcher>()
  replaced(schema, (source) => {
    try {
      if (!patterns.has(source)) patterns.set(source, compile(parseRegex(source, dot)))
    } catch (error) {
      throw error instanceof PatternError ? new PatternError(`the expression ${quote(source)} cannot be used: ${error.message}`) : error
    }
    return source
  })
  return patterns
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

/** A text that would cost too much is matched by no expression. The shortest come first, so that one long text spoils only itself. */
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
