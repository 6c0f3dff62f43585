/** Parses the rules of a project for its structure, and reports every mistake with its line and column. */

import { isObject } from '../../kit/json.ts'
import { memo } from '../../kit/lazy.ts'
import { didYouMean, quote } from '../../kit/text.ts'
import { type Find, findAlone, findCrowded, findCycles, findImports, findLong } from './find.ts'

type Position = { readonly line: number; readonly column: number }

/** A TOML document as the reader of the configuration returns it. */
type RulesDocument = {
  readonly data: { readonly [key: string]: unknown }
  readonly problems: readonly (Position & { readonly message: string })[]
  place(path: string): (Position & { readonly value?: Position }) | undefined
}

type Test = (path: string) => boolean
type Pattern = { readonly text: string; readonly matches: Test }

export type StructureRule = {
  readonly name: string
  readonly verdict: 'veto' | 'ask'
  readonly reason?: string | undefined
  /** Tells whether the rule is about this file. */
  readonly isAbout: Test
  /** Choose its files. */
  readonly patterns: readonly Pattern[]
  readonly find: Find
}

export type Rules = {
  readonly rules: readonly StructureRule[]
  readonly blocks: ReadonlyMap<string, Test>
  readonly problems: readonly string[]
}

type Key = { readonly says: string; fits(value: unknown): boolean }

/** `rank` is the place of a path in the list that is the value; -1: it is not in it. */
type Claimed = {
  readonly value: unknown
  readonly types: boolean
  readonly isAbout: Test
  readonly list: string
  rank(path: string): number
}

/** `files`: whether the rule needs them, or may do without, or the value names them. `names`: the value is a list of blocks and patterns. */
type Claim = Key & { readonly files: 'needs' | 'may' | 'value'; readonly names?: true; find(claimed: Claimed): Find }

const texts: Key = { fits: (value) => listOf(value).length > 0, says: 'a text or a list of texts' }
const whole: Key = { fits: (value) => Number.isInteger(value) && Number(value) > 0, says: 'a whole number above 0' }

// biome-ignore format: a table to be read
const claims: { readonly [key: string]: Claim } = {
  imports_no: { ...texts, files: 'needs', names: true, find: ({ rank, list, types }) =>
    findImports({ types, says: `may not import ${list}`, forbids: (_, target) => rank(target) >= 0 }) },
  imports_only: { ...texts, files: 'needs', names: true, find: ({ rank, list, types, isAbout }) =>
    findImports({ types, says: `may import only ${list}`, forbids: (_, target) => rank(target) < 0 && !isAbout(target) }) },
  layers: { ...texts, files: 'value', names: true, find: ({ rank, list, types }) =>
    findImports({ types, says: `each of ${list} imports only those after it`, forbids: (from, target) => rank(target) >= 0 && rank(target) < rank(from) }) },
  independent: { ...texts, files: 'value', names: true, find: ({ rank, list, types }) =>
    findImports({ types, says: `${list} do not import each other`, forbids: (from, target) => rank(target) >= 0 && rank(target) !== rank(from) }) },
  no_cycles: { fits: (value) => value === true, says: 'true; without the rule cycles are allowed', files: 'may',
    find: ({ isAbout, types }) => findCycles(isAbout, types) },
  beside: { fits: (value) => listOf(value).length > 0 && listOf(value).every((name) => /^(?!\/|.*\.\.\/).*\{name\}/.test(name)), files: 'needs',
    says: 'the name of a file in the same folder or below, with {name} for the name of the file: "{name}.test.ts"',
    find: ({ value }) => findAlone(listOf(value)) },
  max_lines: { ...whole, files: 'needs', find: ({ value }) => findLong(Number(value)) },
  max_files: { ...whole, files: 'needs', find: ({ value, isAbout }) => findCrowded(Number(value), isAbout) },
}

const keys: { readonly [key: string]: Key } = {
  ...claims,
  files: texts,
  except: texts,
  types: { fits: (value) => typeof value === 'boolean', says: 'true or false' },
  verdict: { fits: (value) => value === 'veto' || value === 'ask', says: '"veto" or "ask"' },
  reason: { fits: (value) => typeof value === 'string', says: 'a text' },
}

/** Returns the texts, or nothing when one of them is something else. */
function listOf(value: unknown): readonly string[] {
  const list: readonly unknown[] = Array.isArray(value) ? value : [value]
  return list.every((one) => typeof one === 'string' && one !== '') ? list.map(String) : []
}

export function parseStructure({ data, problems: syntax, place }: RulesDocument): Rules {
  const problems = syntax.map(({ line, column, message }) => `${line}:${column}: ${message}`)
  const say = (path: string, message: string, { line, column } = place(path)?.value ?? place(path) ?? { line: 1, column: 1 }) => {
    problems.push(`${line}:${column}: ${path}: ${message}`)
  }
  /** Returns the members of a table whose names are known. */
  const entries = (path: string, value: unknown, known?: readonly string[]) => {
    if (!isObject(value)) say(path, 'must be a table')
    return Object.entries(isObject(value) ? value : {}).filter(([key]) => {
      if (known === undefined || known.includes(key)) return true
      const name = path === '' ? key : `${path}.${key}`
      say(name, `unknown key; allowed: ${known.join(', ')}${didYouMean(key, known)}`, place(name))
      return false
    })
  }
  const { blocks: written = {}, rules: given = {} } = Object.fromEntries(entries('', data, ['blocks', 'rules']))
  const named = entries('blocks', written).map(([name, value]): [string, Test] => {
    if (!texts.fits(value)) say(`blocks.${name}`, `must be ${texts.says}`)
    return [name, anyOf(listOf(value).map((text) => ({ matches: globOf(text) })))]
  })
  const blocks = new Map(named)
  const select = (path: string, value: unknown = []): readonly Pattern[] =>
    listOf(value).map((text) => {
      if (!blocks.has(text) && /^[\w-]+$/.test(text))
        say(path, `no block is called ${quote(text)}; a path has "/", "." or "*" in it${didYouMean(text, [...blocks.keys()])}`)
      return { text, matches: blocks.get(text) ?? globOf(text) }
    })

  function ruleOf(name: string, table: unknown): StructureRule[] {
    const at = `rules.${name}`
    const value = Object.fromEntries(entries(at, table, Object.keys(keys)))
    for (const [key, one] of Object.entries(value)) if (!keys[key]?.fits(one)) say(`${at}.${key}`, `must be ${keys[key]?.says}`)
    if (!/^[a-z0-9_-]{1,64}$/.test(name)) say(at, 'a name has 1 to 64 of a–z, 0–9, "-" and "_"')
    const [key = '', ...more] = Object.keys(claims).filter((one) => value[one] !== undefined)
    const claim = claims[key]
    if (claim === undefined || more.length > 0) say(at, `needs exactly one of ${Object.keys(claims).join(', ')}`)
    if (claim === undefined) return []
    if (claim.files === 'needs' && value.files === undefined) say(at, `needs files: ${key} is about some of them`)
    const listed = claim.names ? select(`${at}.${key}`, value[key]) : []
    const files = claim.files === 'value' ? listed : select(`${at}.files`, value.files)
    const except = select(`${at}.except`, value.except)
    const isAbout: Test = (path) => (files.length === 0 || anyOf(files)(path)) && !anyOf(except)(path)
    const rank = (path: string) => listed.findIndex(({ matches }) => matches(path))
    const list = listed.map(({ text }) => text).join(', ')
    const find = claim.find({ value: value[key], types: value.types !== false, isAbout, list, rank })
    const reason = typeof value.reason === 'string' ? value.reason : undefined
    return [{ name, verdict: value.verdict === 'ask' ? 'ask' : 'veto', reason, isAbout, patterns: [...files, ...except], find }]
  }
  return { rules: entries('rules', given).flatMap(([name, table]) => ruleOf(name, table)), blocks, problems }
}

function anyOf(patterns: readonly Pick<Pattern, 'matches'>[]): Test {
  return (path) => patterns.some(({ matches }) => matches(path))
}

/** Case does not count, because on some disks two spellings are one file. A pattern that ends with "/" means everything in the folder. */
function globOf(pattern: string): Test {
  const glob = new Bun.Glob(pattern.replace(/^\.\//, '').replace(/\/$/, '/**').toLowerCase())
  return memo((path) => glob.match(path.toLowerCase()))
}
