/** Reads one table of a TOML file field by field, and collects every problem with its line. */

import { isObject } from '../../kit/json.ts'
import { didYouMean } from '../../kit/text.ts'
import { readToml, shown, type TomlDocument } from './toml.ts'

/** `line` and `column` count from 1. */
export type FieldProblem = { readonly line?: number; readonly column?: number; readonly field: string; readonly message: string }

export type TableReader = {
  readonly path: string
  text(name: string, fallback?: string): string
  oneOf<const T extends string>(name: string, values: readonly T[], fallback?: T): T
  whole(name: string, range: { readonly min: number; readonly max: number; readonly fallback?: number }): number
  truth(name: string, fallback: boolean): boolean
  texts(name: string, fallback?: readonly string[]): readonly string[]
  numbers(name: string, range: { readonly min: number; readonly max: number }): readonly number[]
  tables(name: string): readonly (readonly [name: string, table: TableReader])[]
  /** Reads one table, as an empty one when it is absent. */
  table(name: string): TableReader
  /** Reads an array of tables, such as `[[tools]]`; absent: none. */
  list(name: string): readonly TableReader[]
  has(name: string): boolean
  raw(name: string): unknown
  wrong(name: string, message: string): void
  /** Reports the fields that were not read. */
  end(): void
}

type TableSource = { readonly data: { readonly [name: string]: unknown }; readonly path: string; readonly place: TomlDocument['place'] }

/** Reads a whole TOML text with `read`. Each problem begins with the line. */
export function readTables<T>(text: string, read: (root: TableReader) => T): { readonly value: T; readonly problems: readonly string[] } {
  const { data, problems: broken, place } = readToml(text)
  const problems: FieldProblem[] = broken.map(({ line, message }) => ({ line, field: '', message }))
  const root = createTableReader({ data, path: '', place }, problems)
  const value = read(root)
  root.end()
  const sorted = problems.toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0))
  return { value, problems: sorted.map(({ line, field, message }) => `${line === undefined ? '' : `line ${line}: `}${field} ${message}`) }
}

/** Reads a wrong field as its fallback, or as an empty value, so that the other problems are found too. */
export function createTableReader({ data, path, place }: TableSource, problems: FieldProblem[]): TableReader {
  const read = new Set<string>()
  const nameOf = (name: string) => (path === '' ? name : `${path}.${name}`)

  function wrong(name: string, message: string): void {
    const field = name === '' ? path : nameOf(name)
    const { line, column } = place(field) ?? place(path) ?? {}
    problems.push({ field, message, line, column })
  }

  function value<T>(name: string, what: string, fallback: T | undefined, empty: T, fits: (found: unknown) => found is T): T {
    read.add(name)
    const found = data[name]
    if (found === undefined && fallback !== undefined) return fallback
    if (fits(found)) return found
    wrong(name, found === undefined ? `is missing; it is ${what}` : `is ${what}; got ${shown(found)}`)
    return fallback ?? empty
  }

  const tables: TableReader['tables'] = (name) => {
    const found = value<{ [name: string]: unknown }>(name, 'a table', {}, {}, isObject)
    return Object.entries(found).flatMap(([key, table]) => {
      const under = `${nameOf(name)}.${key}`
      if (isObject(table)) return [[key, createTableReader({ data: table, path: under, place }, problems)] as const]
      wrong(`${name}.${key}`, `is a table; got ${shown(table)}`)
      return []
    })
  }

  const within = (name: string, table: TableSource['data']) => createTableReader({ data: table, path: nameOf(name), place }, problems)

  return {
    path,
    tables,
    table: (name) => within(name, value<TableSource['data']>(name, 'a table', {}, {}, isObject)),
    list: (name) =>
      value<readonly TableSource['data'][]>(name, `an array of tables; write [[${nameOf(name)}]] before each`, [], [], isTables).map(
        (table, at) => within(`${name}.${at}`, table),
      ),
    wrong,
    text: (name, fallback) => value(name, 'a text', fallback, '', isText),
    oneOf: (name, values, fallback) => {
      const isOne = (found: unknown): found is (typeof values)[number] => values.some((one) => one === found)
      const first = values[0]
      if (first === undefined) throw new Error(`${name}: no values`)
      const near = isText(data[name]) ? didYouMean(data[name], values) : ''
      return value(name, `one of ${values.join(', ')}${near}`, fallback, first, isOne)
    },
    whole: (name, { min, max, fallback }) =>
      value(name, `a whole number from ${min} to ${max}`, fallback, min, (found) => isWhole(found, min, max)),
    truth: (name, fallback) => value(name, 'true or false', fallback, fallback, (found) => typeof found === 'boolean'),
    texts: (name, fallback) => value(name, 'a list of texts', fallback, [], (found) => Array.isArray(found) && found.every(isText)),
    numbers: (name, { min, max }) =>
      value(
        name,
        `a list of whole numbers from ${min} to ${max}`,
        [],
        [],
        (found): found is number[] => Array.isArray(found) && found.every((one) => isWhole(one, min, max)),
      ),
    has: (name) => data[name] !== undefined,
    raw: (name) => {
      read.add(name)
      return data[name]
    },
    end() {
      for (const name of Object.keys(data)) if (!read.has(name)) wrong(name, `is not a field of this table${didYouMean(name, [...read])}`)
    },
  }
}

function isTables(value: unknown): value is readonly TableSource['data'][] {
  return Array.isArray(value) && value.every(isObject)
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}

function isWhole(value: unknown, min: number, max: number): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max
}
