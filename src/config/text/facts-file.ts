/** Reads models.toml, a person's own list of what is known of models: one table for each, `[PROVIDER."MODEL"]`. */

import { isObject } from '../../kit/json.ts'
import { rowOf } from '../../kit/settings.ts'
import { didYouMean } from '../../kit/text.ts'
import { factRows } from '../../providers/rows.ts'
import type { ModelFacts } from '../../providers/wire/facts/model-facts.ts'
import { check } from './check.ts'
import { readConfigFile } from './read-toml-file.ts'
import { quote, readToml, type TomlDocument } from './toml.ts'

export type FactsFile = {
  /** Returns what the file says of a provider's model. */
  find(provider: string, model: string): ModelFacts | undefined
  /** The models that the file names, by provider. */
  readonly names: readonly { readonly provider: string; readonly model: string }[]
  /** Each with file, line and column. */
  readonly problems: readonly string[]
}

type ModelFactsRow = { readonly provider: string; readonly model: string; readonly facts: ModelFacts }

/** Never throws. A missing file is an empty one. */
export function readFactsFile(path: string): FactsFile {
  const read = readConfigFile(path)
  if (read.state === 'missing') return fileOf([], [])
  if (read.state === 'unusable') return fileOf([], [`${path}${read.line === undefined ? '' : `:${read.line}`}: ${read.why}`])
  const toml = readToml(read.text)
  const problems = toml.problems.map(({ line, column, message }) => `${path}:${line}:${column}: ${message}`)
  const blame = (key: string, why: string) => void problems.push(`${path}${placeOf(toml, key)}: ${key}: ${why}`)
  const found = Object.entries(toml.data).flatMap(([provider, models]) => {
    if (isTable(models)) return Object.entries(models).flatMap(([model, raw]) => entryOf({ provider, model, raw }, blame))
    blame(provider, `must be a provider with its models: [${provider}."MODEL"]`)
    return []
  })
  return fileOf(found, problems)
}

function fileOf(found: readonly ModelFactsRow[], problems: readonly string[]): FactsFile {
  const find: FactsFile['find'] = (provider, model) => found.find((each) => each.provider === provider && each.model === model)?.facts
  return { find, names: found.map(({ provider, model }) => ({ provider, model })), problems }
}

function placeOf(toml: TomlDocument, key: string): string {
  const place = toml.place(key)
  return place === undefined ? '' : `:${place.line}:${place.column}`
}

type Blame = (key: string, why: string) => void

function entryOf({ provider, model, raw }: { provider: string; model: string; raw: unknown }, blame: Blame): ModelFactsRow[] {
  const table = `${provider}.${model}`
  if (!isTable(raw)) {
    blame(table, `must be a table; write [${provider}.${quote(model)}], with the quotes when the name has a dot`)
    return []
  }
  const numbers = new Map<string, number>()
  const words: string[] = []
  for (const [key, value] of Object.entries(raw)) {
    const row = rowOf(factRows, key)
    const { wrong, value: right } = row ? check(row, value, nowhere) : { wrong: [unknown(key, model)], value: undefined }
    for (const why of wrong) blame(`${table}.${key}`, why)
    if (typeof right === 'number') numbers.set(key, right)
    if (Array.isArray(right)) words.push(...right.map(String))
  }
  const priced = Object.keys(raw).filter((key) => key.startsWith('price_'))
  if (priced.length > 0 && !(priced.includes('price_input') && priced.includes('price_output')))
    blame(table, 'price_input and price_output belong together; give both')
  const reasons = typeof raw.reasons === 'boolean' ? { reasons: raw.reasons } : {}
  return [{ provider, model, facts: { ...factsOf(numbers, words), ...reasons } }]
}

function factsOf(numbers: ReadonlyMap<string, number>, sees: readonly string[]): ModelFacts {
  const [contextTokens, maxOutputTokens] = [numbers.get('context_tokens'), numbers.get('max_output_tokens')]
  const prices = {
    input: numbers.get('price_input'),
    output: numbers.get('price_output'),
    cached: numbers.get('price_cached'),
    cacheWrite: numbers.get('price_cache_write'),
  }
  return {
    contextTokens,
    maxOutputTokens,
    ...(Object.values(prices).some((price) => price !== undefined) ? { prices } : {}),
    ...(sees.length === 0 ? {} : { sees }),
  }
}

/** `[openai.gpt-5.4-mini]` without quotes is a table inside a table. */
function unknown(key: string, model: string): string {
  const known = Object.keys(factRows)
  const near = didYouMean(key, known)
  return `unknown key${near === '' ? `; there are: ${known.join(', ')}, and a name with a dot needs quotes: "${model}.${key}"` : near}`
}

/** No fact is a path or the name of a variable. */
const nowhere = { home: '', userHome: '', env: {}, base: '', typed: false } as const

function isTable(value: unknown): value is { readonly [key: string]: unknown } {
  return isObject(value) && !(value instanceof Date) && !Array.isArray(value)
}
