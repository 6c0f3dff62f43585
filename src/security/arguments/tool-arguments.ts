/**
 * Validates tool arguments against the tool's JSON Schema, with messages a model can act on; loads zod only when the quick check is not
 * certain.
 */

import { errorText } from '../../kit/errors.ts'
import type { JsonObject } from '../../kit/json.ts'
import { isObject } from '../../kit/json.ts'
import { didYouMean, quote, visible } from '../../kit/text.ts'
import type { Schema } from '../../runtime/port.ts'
import { fits } from './fits.ts'
import { boundPatterns, LONGEST_TEXT } from './schema-patterns.ts'

/** `input` is the same object that was passed in: nothing is added, dropped or coerced, so the judged input is the input that runs. */
export type Validation = { readonly ok: true; readonly input: JsonObject } | { readonly ok: false; readonly message: string }

export type Validator = (schema: Schema, input: JsonObject) => Promise<Validation>

/** One issue that zod reports, with only the fields that the messages use. */
type Issue = { readonly code?: string; readonly path: readonly PropertyKey[]; readonly message: string; readonly [key: string]: unknown }

type Compiled = (input: JsonObject) => readonly Issue[]

/**
 * Caches each compiled schema as long as the schema object lives. Unknown keys are accepted unless the schema forbids them, as JSON Schema
 * says; a schema that zod cannot express (not, if/then, external $ref) accepts nothing. Never rejects.
 */
export function createValidator(): Validator {
  const cache = new WeakMap<Schema, Compiled>()
  return async (schema, input) => {
    if (fits(schema, input)) return { ok: true, input }
    try {
      const check = cache.get(schema) ?? (await compile(schema))
      cache.set(schema, check)
      const issues = check(input)
      return issues.length === 0 ? { ok: true, input } : { ok: false, message: describe(issues, schema, input) }
    } catch (error) {
      return { ok: false, message: `the tool's own schema cannot be checked (${errorText(error)}); report it to the operator` }
    }
  }
}

async function compile(schema: Schema): Promise<Compiled> {
  const { fromJSONSchema } = await import('zod')
  const bounded = boundPatterns(schema)
  const typeOf = (one: object) => fromJSONSchema(JSON.parse(JSON.stringify(one)))
  const type = bounded ? undefined : typeOf(schema)
  return (input) => {
    const issues = (type ?? typeOf(Object(bounded?.for(input)))).safeParse(input).error?.issues ?? []
    return issues.map((issue) => ({
      ...issue,
      ...('pattern' in issue && { pattern: bounded?.original(String(issue.pattern)) ?? issue.pattern }),
    }))
  }
}

function describe(issues: readonly Issue[], schema: Schema, input: JsonObject): string {
  const lines = issues.slice(0, 8).map((issue) => sentence(issue, schema, input))
  return [...lines, ...(issues.length > 8 ? [`and ${issues.length - 8} more`] : [])].join('; ')
}

function sentence(issue: Issue, schema: Schema, input: JsonObject): string {
  const name = visible(issue.path.map(String).join('.')) || 'arguments'
  if (issue.code === 'unrecognized_keys') return unknownKeys(issue, schema)
  const value = at(input, issue.path)
  if (value === undefined) return `"${name}" is missing (${expected(issue)})`
  const tooLong = issue.format === 'regex' && typeof value === 'string' && value.length > LONGEST_TEXT
  return `"${name}" must be ${expected(issue)}${tooLong ? ` and have at most ${LONGEST_TEXT} characters` : ''}, got ${quote(value)}`
}

function unknownKeys(issue: Issue, schema: Schema): string {
  const known = issue.path.length === 0 ? Object.keys(schema.properties ?? {}) : []
  const keys = Array.isArray(issue.keys) ? issue.keys.map(String) : []
  const list = known.length === 0 ? '' : `; known keys: ${known.join(', ')}`
  return (
    keys
      .slice(0, 8)
      .map((key) => `unknown key ${quote(key)}${didYouMean(key, known)}`)
      .join('; ') + list
  )
}

function expected(issue: Issue): string {
  if (issue.code === 'invalid_type') return issue.expected === 'int' ? 'an integer' : `of type ${issue.expected}`
  if (issue.code === 'invalid_value' && Array.isArray(issue.values)) return `one of ${issue.values.map((value) => quote(value)).join(', ')}`
  if (issue.code === 'too_small') return `at least ${issue.minimum} ${unit(issue)}`.trimEnd()
  if (issue.code === 'too_big') return `at most ${issue.maximum} ${unit(issue)}`.trimEnd()
  if (issue.code === 'invalid_format')
    return issue.format === 'regex' ? `text that matches /${visible(String(issue.pattern))}/` : `a valid ${issue.format}`
  return `valid: ${visible(issue.message)}`
}

function unit(issue: Issue): string {
  return issue.origin === 'string' ? 'characters' : issue.origin === 'array' ? 'items' : ''
}

function at(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>((inner, key) => {
    if (Array.isArray(inner)) return inner[Number(key)]
    return isObject(inner) && Object.hasOwn(inner, key) ? inner[String(key)] : undefined
  }, value)
}
