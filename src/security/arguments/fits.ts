/** Checks ordinary arguments quickly against the plain subset of JSON Schema that most tools use, without loading a schema library. */

import { isObject } from '../../kit/json.ts'

type Test = (schema: { [key: string]: unknown }, value: unknown) => boolean

const annotations = ['type', 'description', 'title', 'default', 'examples', '$schema']

/** The keywords that each type supports; with any other keyword the quick check cannot accept the input. */
const keywords: { readonly [type: string]: readonly string[] } = {
  string: [...annotations, 'enum', 'minLength', 'maxLength'],
  integer: [...annotations, 'minimum', 'maximum'],
  number: [...annotations, 'minimum', 'maximum'],
  boolean: annotations,
  array: [...annotations, 'items', 'minItems', 'maxItems'],
  object: [...annotations, 'properties', 'required', 'additionalProperties'],
}

const tests: { readonly [type: string]: Test } = {
  string: (schema, value) =>
    typeof value === 'string' && listed(schema.enum, value) && between(value.length, schema.minLength, schema.maxLength),
  integer: (schema, value) => Number.isSafeInteger(value) && between(value, schema.minimum, schema.maximum),
  number: (schema, value) => Number.isFinite(value) && between(value, schema.minimum, schema.maximum),
  boolean: (_schema, value) => typeof value === 'boolean',
  array: (schema, value) =>
    Array.isArray(value) && between(value.length, schema.minItems, schema.maxItems) && value.every((item) => fits(schema.items, item)),
  object: (schema, value) => isObject(value) && fitsObject(schema, value),
}

/**
 * @returns true only if the full check would pass too; false means "not certain", never "invalid". Property-tested against the full check.
 */
export function fits(schema: unknown, value: unknown): boolean {
  if (!isObject(schema) || typeof schema.type !== 'string' || !Object.hasOwn(tests, schema.type)) return false
  const known = keywords[schema.type]
  return Object.keys(schema).every((key) => known?.includes(key)) && tests[schema.type]?.(schema, value) === true
}

function fitsObject(schema: { [key: string]: unknown }, value: { [key: string]: unknown }): boolean {
  const { properties = {}, required = [], additionalProperties = true } = schema
  if (!isObject(properties) || !Array.isArray(required) || typeof additionalProperties !== 'boolean') return false
  const whole = required.every((key) => typeof key === 'string' && Object.hasOwn(value, key))
  return (
    whole &&
    Object.entries(value).every(([key, item]) => (Object.hasOwn(properties, key) ? fits(properties[key], item) : additionalProperties))
  )
}

function listed(options: unknown, value: string): boolean {
  return (
    options === undefined || (Array.isArray(options) && options.every((option) => typeof option === 'string') && options.includes(value))
  )
}

function between(size: unknown, least: unknown, most: unknown): boolean {
  const bound = (limit: unknown) => limit === undefined || typeof limit === 'number'
  if (typeof size !== 'number' || !bound(least) || !bound(most)) return false
  return !(typeof least === 'number' && size < least) && !(typeof most === 'number' && size > most)
}
