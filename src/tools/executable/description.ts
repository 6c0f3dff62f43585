/** Parses an executable's description of itself: a name, a sentence and a JSON Schema of an object. It ignores all other members. */

import { isObject, type JsonObject, parseJson } from '../../kit/json.ts'
import { quote } from '../../kit/text.ts'
import type { Schema, ToolSpec } from '../../runtime/port.ts'
import { patternFlaw } from '../../security/arguments/schema-patterns.ts'

/** `input`: where it reads its arguments; absent: in its first argument. */
export type ParsedDescription =
  | { readonly ok: true; readonly spec: ToolSpec; readonly input?: 'stdin' }
  | { readonly ok: false; readonly why: string }

const MAX_DESCRIPTION = 4_096
const MAX_DEPTH = 32

/** The names that every model vendor accepts. */
const namePattern = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/

export const nameRule = 'a letter, then letters, digits, "_" and "-", 64 characters at most'

export function isToolName(name: string): boolean {
  return namePattern.test(name)
}

/** Never throws. `why` completes the sentence "… was refused: it". */
export function parseDescription(text: string): ParsedDescription {
  const value = parseJson(text)
  if (!isObject(value)) return no(`printed no JSON object for --describe but ${quote(text.trim().slice(0, 80))}`)
  const { name, description, parameters, input } = value
  if (typeof name !== 'string' || !isToolName(name)) return no(`calls itself ${quote(name)}; a name is ${nameRule}`)
  if (typeof description !== 'string' || description.trim() === '') return no('has no "description"; say in a sentence what it does')
  if (description.length > MAX_DESCRIPTION)
    return no(`has a description of ${description.length} characters; ${MAX_DESCRIPTION} are the limit`)
  if (!isSchema(parameters)) return no(`has ${flawOf(parameters)}; give {"type":"object","properties":{…}}`)
  if (depth(parameters) > MAX_DEPTH) return no(`has "parameters" nested more than ${MAX_DEPTH} deep`)
  const flaw = patternFlaw(parameters)
  if (flaw !== undefined) return no(`has "parameters" that cannot be checked: ${flaw}`)
  if (input !== undefined && input !== 'stdin') return no(`has "input" ${quote(input)}; leave it out, or write "stdin"`)
  return { ok: true, ...(input === undefined ? {} : { input }), spec: { name, description: description.trim().toWellFormed(), parameters } }
}

function no(why: string): ParsedDescription {
  return { ok: false, why }
}

function flawOf(parameters: unknown): string {
  if (parameters === undefined) return 'no "parameters"'
  if (!isObject(parameters)) return '"parameters" that are not a JSON object'
  if (parameters.type !== 'object') return `"parameters" of type ${quote(parameters.type)}, not "object"`
  return parameters.properties !== undefined && !isObject(parameters.properties)
    ? '"properties" that are not a JSON object'
    : '"required" that is not a list of names'
}

/** Expects a value from JSON.parse, so everything inside is JSON. */
export function isSchema(value: unknown): value is Schema {
  if (!isJsonObject(value) || value.type !== 'object') return false
  const { properties, required } = value
  return (
    (properties === undefined || isObject(properties)) &&
    (required === undefined || (Array.isArray(required) && required.every((each) => typeof each === 'string')))
  )
}

function isJsonObject(value: unknown): value is JsonObject {
  return isObject(value)
}

function depth(value: unknown): number {
  let level: readonly unknown[] = [value]
  for (let deep = 0; ; deep++) {
    level = level.flatMap((each) => (typeof each === 'object' && each !== null ? Object.values(each) : []))
    if (level.length === 0 || deep > MAX_DEPTH) return deep
  }
}
