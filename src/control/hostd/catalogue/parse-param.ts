/** Reads one typed parameter of an operation. */

import { checkValue } from './check-value.ts'
import { compilePattern, type LinearPattern } from './linear-pattern.ts'
import type { Param } from './operation.ts'
import type { TableReader } from './table-reader.ts'

const types = ['enum', 'text', 'int', 'path', 'list'] as const
const longest = 4_096

export function parseParam(table: TableReader): Param {
  const typed = byType(table)
  const optional = table.truth('optional', false)
  const fallback = table.raw('default')
  table.end()
  if (fallback === undefined) return optional ? { ...typed, fallback: null } : typed
  if (optional) table.wrong('optional', 'has no meaning beside a default')
  if (typeof fallback !== 'string' && typeof fallback !== 'number') {
    table.wrong('default', 'is a text or a whole number')
    return typed
  }
  const checked = checkValue(typed, fallback, (_, value) => ({ ok: true, texts: [value] }))
  if (!checked.ok) table.wrong('default', checked.message)
  return { ...typed, fallback }
}

function byType(table: TableReader): Param {
  const type = table.oneOf('type', types)
  if (type === 'enum') return { type, values: valuesOf(table) }
  if (type === 'int') return range(table)
  if (type === 'path') return { type, under: underOf(table), kind: table.oneOf('kind', ['any', 'file', 'folder'], 'any') }
  const most = table.whole('most', { min: 1, max: longest, fallback: 256 })
  if (type === 'text') return { type, most, pattern: patternOf(table) }
  return { type, most, pattern: patternOf(table), count: table.whole('count', { min: 1, max: 64, fallback: 16 }) }
}

function valuesOf(table: TableReader): readonly string[] {
  const values = table.texts('values')
  if (values.length === 0) table.wrong('values', 'names no value')
  for (const value of values)
    if (value === '' || /\p{Cc}/u.test(value)) table.wrong('values', 'contains an empty text or a control character')
  return values
}

function range(table: TableReader): Param {
  const limit = { min: Number.MIN_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER }
  const [min, max] = [table.whole('min', limit), table.whole('max', limit)]
  if (min > max) table.wrong('max', `is below min (${min})`)
  return { type: 'int', min, max }
}

function underOf(table: TableReader): string {
  const under = table.text('under')
  if (!/^\/(?:[^/\0]+\/?)*$/.test(under) || /(?:^|\/)\.\.?(?:\/|$)/.test(under))
    table.wrong('under', 'is an absolute path without "." and ".."')
  return under
}

function patternOf(table: TableReader): LinearPattern {
  const source = table.text('pattern')
  const compiled = compilePattern(source)
  if (compiled.ok) return compiled.pattern
  table.wrong('pattern', compiled.message)
  return { source, matches: () => false }
}
