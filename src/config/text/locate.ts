/** Finds the position of each key in a TOML text that the parser has already accepted. */

import { parse } from 'smol-toml'

/** Lines and columns count from 1, columns in UTF-16 units. `value` is where the value starts; absent for a [section]. */
export type TextPosition = {
  readonly line: number
  readonly column: number
  readonly value?: { readonly line: number; readonly column: number }
}

/** Returns positions by dotted path. Arrays of tables have two paths: `tools.1.name`, and `tools.name` for the first of them that has it. */
export function locate(text: string): ReadonlyMap<string, TextPosition> {
  const places = new Map<string, TextPosition>()
  const at = positions(text)
  const record = (path: readonly string[], key: number, value?: number) => {
    const place = value === undefined ? at(key) : { ...at(key), value: at(value) }
    const count = lengths.get(section.join('.'))
    const indexed = count === undefined ? [] : [[...section, String(count - 1), ...path.slice(section.length)].join('.')]
    for (const name of [path.join('.'), ...indexed]) if (!places.has(name)) places.set(name, place)
  }
  let section: readonly string[] = []
  const lengths = new Map<string, number>()
  let i = text.charCodeAt(0) === 0xfeff ? 1 : 0
  while (i < text.length) {
    i = blank(text, i)
    if (i >= text.length) break
    if (text[i] === '[') {
      const start = i
      const key = readKey(text, text[i + 1] === '[' ? i + 2 : i + 1)
      section = key.path
      if (text[i + 1] === '[') lengths.set(section.join('.'), (lengths.get(section.join('.')) ?? 0) + 1)
      record(section, start)
      i = endOfLine(text, key.end)
    } else {
      i = endOfLine(text, pair(text, i, section, record))
    }
  }
  return places
}

type Recorder = (path: readonly string[], key: number, value?: number) => void

/** Records `key = value`; returns the offset after the value. */
function pair(text: string, start: number, under: readonly string[], record: Recorder): number {
  const key = readKey(text, start)
  const path = [...under, ...key.path]
  const value = blank(text, text.indexOf('=', key.end) + 1)
  for (let n = 1; n < key.path.length; n++) record([...under, ...key.path.slice(0, n)], start)
  record(path, start, value)
  return skipValue(text, value, path, record)
}

/** Returns the offset after the value that starts at `start`. */
export function skipValue(text: string, start: number, path: readonly string[], record: Recorder): number {
  const first = text[start]
  if (first === '"' || first === "'") return skipString(text, start)
  if (first === '[') return skipList(text, start, (i) => skipValue(text, i, path, () => undefined))
  if (first === '{') return skipList(text, start, (i) => pair(text, i, path, record))
  const bare = /[,\]}\s#]/g
  bare.lastIndex = start
  return bare.exec(text)?.index ?? text.length
}

function skipList(text: string, start: number, item: (offset: number) => number): number {
  let i = start + 1
  while (i < text.length) {
    i = blank(text, i)
    if (text[i] === ']' || text[i] === '}') return i + 1
    i = text[i] === ',' ? i + 1 : Math.max(item(i), i + 1)
  }
  return i
}

function skipString(text: string, start: number): number {
  const sign = text[start] === '"' ? '"' : "'"
  const long = text.startsWith(sign.repeat(3), start)
  const fence = long ? sign.repeat(3) : sign
  let i = start + fence.length
  while (i < text.length && !text.startsWith(fence, i)) i += sign === '"' && text[i] === '\\' ? 2 : 1
  i += fence.length
  // A long string may end in one or two quotes of its own: """a"""" is the text a".
  while (long && text[i] === sign) i++
  return i
}

function readKey(text: string, start: number): { path: string[]; end: number } {
  const path: string[] = []
  let i = start
  for (;;) {
    i = blank(text, i)
    const end = text[i] === '"' || text[i] === "'" ? skipString(text, i) : bareEnd(text, i)
    path.push(unquote(text.slice(i, end)))
    i = blank(text, end)
    if (text[i] !== '.') return { path, end: i }
    i++
  }
}

function bareEnd(text: string, start: number): number {
  const other = /[^A-Za-z0-9_-]/g
  other.lastIndex = start
  return other.exec(text)?.index ?? text.length
}

function unquote(key: string): string {
  if (key.startsWith("'")) return key.slice(1, -1)
  if (!key.startsWith('"')) return key
  return key.includes('\\') ? (Object.keys(parse(`${key} = 0`))[0] ?? key) : key.slice(1, -1)
}

/** Returns the next offset that is neither white space nor part of a comment. */
function blank(text: string, start: number): number {
  let i = start
  for (; i < text.length; i++) {
    const sign = text[i]
    if (sign === '#') i = endOfLine(text, i)
    else if (sign !== ' ' && sign !== '\t' && sign !== '\n' && sign !== '\r') return i
  }
  return i
}

function endOfLine(text: string, start: number): number {
  const end = text.indexOf('\n', start)
  return end === -1 ? text.length : end
}

function positions(text: string): (offset: number) => { line: number; column: number } {
  const starts = [0]
  for (let i = text.indexOf('\n'); i !== -1; i = text.indexOf('\n', i + 1)) starts.push(i + 1)
  return (offset) => {
    let low = 0
    let high = starts.length - 1
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if ((starts[middle] ?? 0) <= offset) low = middle
      else high = middle - 1
    }
    return { line: low + 1, column: offset - (starts[low] ?? 0) + 1 }
  }
}
