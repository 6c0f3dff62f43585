/** Sets and removes one assignment in a TOML text that the parser accepts; comments, order and all other bytes stay. All functions are pure. */

import { isObject } from '../../kit/json.ts'
import { leafOf, sectionOf } from '../table.ts'
import { locate, skipValue } from './locate.ts'
import { readToml, tomlValue } from './toml.ts'

/** Replaces the value of a dotted key, or adds a line: below its commented-out one, else below the header of its section. `value` is TOML. */
export function setInToml(text: string, key: string, value: string): string {
  const span = spanOf(text, key)
  if (span) return text.slice(0, span.start) + value + text.slice(span.end)
  const end = text.includes('\r\n') ? '\r\n' : '\n'
  const [section, leaf] = [sectionOf(key), leafOf(key)]
  const places = locate(text)
  const place = places.get(section)
  const mark = text.startsWith('\ufeff') ? 1 : 0
  const insert = (at: number, line: string) => text.slice(0, at) + line + text.slice(at)
  if (section !== '' && place === undefined) {
    const gap = text === '' ? '' : text.endsWith('\n') ? end : end + end
    return `${text}${gap}[${section}]${end}${leaf} = ${value}${end}`
  }
  const lines = text.split('\n')
  const isHeader = (line: number, column: number) => lines[line - 1]?.[column - 1] === '['
  // The section consists of dotted keys.
  if (place && !isHeader(place.line, place.column)) return insert(offsetOf(text, place.line, 1), `${key} = ${value}${end}`)
  const from = place?.line ?? 0
  const headers = [...places.values()].filter(({ line, column }) => line > from && isHeader(line, column)).map(({ line }) => line)
  const until = Math.min(lines.length, ...headers.map((line) => line - 1))
  const commented = lines.slice(from, until).findIndex((line) => new RegExp(`^\\s*#\\s*${leaf}\\s*=`).test(line))
  const after = commented < 0 ? from : from + commented + 1
  if (after === 0) return insert(mark, `${leaf} = ${value}${end}`)
  if (after === lines.length) return `${text}${end}${leaf} = ${value}${end}`
  return insert(offsetOf(text, after + 1, 1), `${leaf} = ${value}${end}`)
}

/** Removes the line of a dotted key; a comment behind its value stays. */
export function unsetInToml(text: string, key: string): string {
  const span = spanOf(text, key)
  if (!span) return text
  const begin = text.lastIndexOf('\n', span.start) + 1
  const next = text.indexOf('\n', span.end)
  const end = next < 0 ? text.length : next + 1
  const rest = text.slice(span.end, end).trimStart()
  return text.slice(0, begin) + (rest.startsWith('#') ? rest : '') + text.slice(end)
}

/** Tells whether the texts differ only in this key, which has `value` in `after`. Undefined: the key is not set there. */
export function differsOnlyIn(key: string, { before, after, value }: { before: string; after: string; value?: string }): boolean {
  const others = leaves(readToml(before).data).filter(([path]) => path !== key && !path.startsWith(`${key}.`))
  const own = value === undefined ? [] : leaves(readToml(`x = ${value}`).data).map(([path, is]) => [key + path.slice(1), is] as const)
  const now = readToml(after)
  const sorted = (list: readonly (readonly [string, string])[]) => list.map((each) => each.join(' = ')).sort()
  return now.problems.length === 0 && Bun.deepEquals(sorted(leaves(now.data)), sorted([...others, ...own]))
}

function leaves(data: unknown, path = ''): readonly (readonly [path: string, value: string])[] {
  if (!isObject(data) || data instanceof Date) return [[path, data instanceof Date ? data.toISOString() : tomlValue(data)]]
  return Object.entries(data).flatMap(([name, value]) => leaves(value, path === '' ? name : `${path}.${name}`))
}

function spanOf(text: string, key: string): { readonly start: number; readonly end: number } | undefined {
  const at = locate(text).get(key)?.value
  if (at === undefined) return undefined
  const start = offsetOf(text, at.line, at.column)
  return { start, end: skipValue(text, start, [], () => undefined) }
}

function offsetOf(text: string, line: number, column: number): number {
  const before = text.split('\n').slice(0, line - 1)
  return before.reduce((sum, each) => sum + each.length + 1, 0) + column - 1
}
