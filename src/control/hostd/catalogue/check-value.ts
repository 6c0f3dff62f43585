/** Checks a value against its parameter, and describes parameters in words. Paths are resolved by a function that is passed in. */

import { shown } from '../../../config/text/toml-quote.ts'
import type { Param } from './operation.ts'

/** `texts` are the elements that the value becomes: one, or several for a list. */
export type CheckedValue = { readonly ok: true; readonly texts: readonly string[] } | { readonly ok: false; readonly message: string }

export type ResolvePath = (param: Extract<Param, { type: 'path' }>, value: string) => CheckedValue

export function checkValue(param: Param, value: unknown, resolvePath: ResolvePath): CheckedValue {
  if (param.type === 'list') return checkList(param, value)
  if (param.type === 'int') return checkWhole(param, value)
  if (typeof value !== 'string') return wrong(`must be a text; got ${shown(value)}`)
  const control = controlIn(value)
  if (control !== undefined) return wrong(control)
  if (param.type === 'enum')
    return param.values.includes(value) ? one(value) : wrong(`must be ${describeParam(param)}; got ${shown(value)}`)
  return param.type === 'text' ? checkText(param, value) : resolvePath(param, value)
}

/** `integer 1 to 500`, `text ^[a-z]+$`. */
export function describeParam(param: Param): string {
  const words = typeInWords(param)
  if (param.fallback === undefined) return words
  return param.fallback === null ? `${words}, optional` : `${words}, default ${param.fallback}`
}

function typeInWords(param: Param): string {
  if (param.type === 'enum') return `one of ${param.values.join(', ')}`
  if (param.type === 'int') return `integer ${param.min} to ${param.max}`
  if (param.type === 'path') return `existing ${param.kind === 'any' ? 'path' : param.kind} under ${param.under}`
  const text = `text ${param.pattern.source}`
  return param.type === 'text' ? text : `list of at most ${param.count}: ${text}`
}

function checkWhole({ min, max }: Extract<Param, { type: 'int' }>, value: unknown): CheckedValue {
  const isWhole = typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max
  return isWhole ? one(String(value)) : wrong(`must be an integer from ${min} to ${max}; got ${shown(value)}`)
}

function checkText(
  { pattern, most }: { readonly pattern: { source: string; matches(text: string): boolean }; readonly most: number },
  value: string,
): CheckedValue {
  if (value.length > most) return wrong(`has ${value.length} characters; at most ${most}`)
  return pattern.matches(value) ? one(value) : wrong(`must match ${pattern.source}; got ${shown(value)}`)
}

function checkList(param: Extract<Param, { type: 'list' }>, value: unknown): CheckedValue {
  if (!Array.isArray(value)) return wrong(`must be a list of texts; got ${shown(value)}`)
  if (value.length > param.count) return wrong(`has ${value.length} elements; at most ${param.count}`)
  const texts: string[] = []
  for (const each of value) {
    const control = typeof each === 'string' ? controlIn(each) : `must contain only texts; got ${shown(each)}`
    const checked = control === undefined ? checkText(param, each) : wrong(control)
    if (!checked.ok) return checked
    texts.push(...checked.texts)
  }
  return { ok: true, texts }
}

function controlIn(value: string): string | undefined {
  if (!value.isWellFormed()) return 'must be well-formed Unicode'
  const found = /\p{Cc}/u.exec(value)?.[0]
  return found === undefined ? undefined : `must not contain control characters; got ${shown(found)}`
}

function one(text: string): CheckedValue {
  return { ok: true, texts: [text] }
}

function wrong(message: string): CheckedValue {
  return { ok: false, message }
}
