/** Parses the rules of a project for its structure, and reports every mistake with its line and column. */

import { isObject } from '../../kit/json.ts'
import { didYouMean, quote } from '../../kit/text.ts'

type Position = { readonly line: number; readonly column: number }

/** A TOML document as the reader of the configuration returns it. */
type RulesDocument = {
  readonly data: { readonly [key: string]: unknown }
  readonly problems: readonly (Position & { readonly message: string })[]
  place(path: string): (Position & { readonly value?: Position }) | undefined
}

type Test = (path: string) => boolean
type Pattern = { readonly text: string; readonly matches: Test }

/** `forbids` compares a file with the target of one of its imports. */
type Claim =
  | { readonly type: 'imports'; readonly says: string; forbids(from: string, target: string): boolean }
  | { readonly type: 'cycles' }
  | { readonly type: 'beside'; readonly names: readonly string[] }
  | { readonly type: 'lines' | 'files'; readonly most: number }

export type StructureRule = {
  readonly name: string
  readonly verdict: 'veto' | 'ask'
  readonly reason?: string | undefined
  /** Whether `import type` counts. */
  readonly types: boolean
  readonly claim: Claim
  /** Tells whether the rule is about this file. */
  readonly isAbout: Test
  /** Choose its files. */
  readonly patterns: readonly Pattern[]
}

export type Rules = {
  readonly rules: readonly StructureRule[]
  readonly blocks: ReadonlyMap<string, Test>
  readonly problems: readonly string[]
}

const texts = [(value: unknown) => listOf(value).length > 0, 'a text or a list of texts'] as const
const whole = [(value: unknown) => Number.isInteger(value) && Number(value) > 0, 'a whole number above 0'] as const
const claims = {
  imports_no: texts,
  imports_only: texts,
  layers: texts,
  independent: texts,
  no_cycles: [(value: unknown) => value === true, 'true; without the rule cycles are allowed'],
  beside: [
    (value: unknown) => listOf(value).length > 0 && listOf(value).every((name) => /^(?!\/|.*\.\.\/).*\{name\}/.test(name)),
    'the name of a file in the same folder or below, with {name} for the name of the file: "{name}.test.ts"',
  ],
  max_lines: whole,
  max_files: whole,
} as const
const keys: { readonly [key: string]: readonly [fits: (value: unknown) => boolean, says: string] } = {
  ...claims,
  files: texts,
  except: texts,
  types: [(value) => typeof value === 'boolean', 'true or false'],
  verdict: [(value) => value === 'veto' || value === 'ask', '"veto" or "ask"'],
  reason: [(value) => typeof value === 'string', 'a text'],
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
  const blocks = new Map<string, Test>()
  for (const [name, value] of entries('blocks', written)) {
    if (!texts[0](value)) say(`blocks.${name}`, `must be ${texts[1]}`)
    blocks.set(name, anyOf(listOf(value).map(globOf)))
  }
  const select = (path: string, value: unknown): readonly Pattern[] =>
    listOf(value).map((text) => {
      const block = blocks.get(text)
      if (block === undefined && /^[\w-]+$/.test(text))
        say(path, `no block is called ${quote(text)}; a path has "/", "." or "*" in it${didYouMean(text, [...blocks.keys()])}`)
      return { text, matches: block ?? globOf(text) }
    })

  const rules = entries('rules', given).flatMap(([name, table]): StructureRule[] => {
    const at = `rules.${name}`
    const value = Object.fromEntries(entries(at, table, Object.keys(keys)))
    for (const [key, one] of Object.entries(value)) if (!keys[key]?.[0](one)) say(`${at}.${key}`, `must be ${keys[key]?.[1]}`)
    if (!/^[a-z0-9_-]{1,64}$/.test(name)) say(at, 'a name has 1 to 64 of a–z, 0–9, "-" and "_"')
    const [claim, ...more] = claimNames.filter((one) => value[one] !== undefined)
    if (claim === undefined || more.length > 0) say(at, `needs exactly one of ${claimNames.join(', ')}`)
    if (claim === undefined) return []
    const isOrder = claim === 'layers' || claim === 'independent'
    if (value.files === undefined && !isOrder && claim !== 'no_cycles') say(at, `needs files: ${claim} is about some of them`)
    const named = claim.startsWith('imports') || isOrder ? select(`${at}.${claim}`, value[claim]) : []
    const files = value.files === undefined ? (isOrder ? named : []) : select(`${at}.files`, value.files)
    const except = value.except === undefined ? [] : select(`${at}.except`, value.except)
    const [isFile, isExcepted] = [files, except].map((each) => anyOf(each.map(({ matches }) => matches)))
    const isAbout: Test = (path) => (files.length === 0 || isFile?.(path) === true) && isExcepted?.(path) !== true
    return [
      {
        name,
        verdict: value.verdict === 'ask' ? 'ask' : 'veto',
        reason: typeof value.reason === 'string' ? value.reason : undefined,
        types: value.types !== false,
        claim: claimOf(claim, { value: value[claim], named, isAbout }),
        isAbout,
        patterns: [...files, ...except],
      },
    ]
  })
  return { rules, blocks, problems }
}

type ClaimName = keyof typeof claims
const claimNames = [
  'imports_no',
  'imports_only',
  'layers',
  'independent',
  'no_cycles',
  'beside',
  'max_lines',
  'max_files',
] as const satisfies ClaimName[]

type Claimed = { readonly value: unknown; readonly named: readonly Pattern[]; readonly isAbout: Test }

function claimOf(claim: ClaimName, { value, named, isAbout }: Claimed): Claim {
  const list = named.map(({ text }) => text).join(', ')
  const rank = (path: string) => named.findIndex(({ matches }) => matches(path))
  switch (claim) {
    case 'imports_no':
      return { type: 'imports', says: `may not import ${list}`, forbids: (_, target) => rank(target) >= 0 }
    case 'imports_only':
      return { type: 'imports', says: `may import only ${list}`, forbids: (_, target) => rank(target) < 0 && !isAbout(target) }
    case 'layers':
      return {
        type: 'imports',
        says: `each of ${list} imports only those after it`,
        forbids: (from, target) => rank(target) >= 0 && rank(target) < rank(from),
      }
    case 'independent':
      return {
        type: 'imports',
        says: `${list} do not import each other`,
        forbids: (from, target) => rank(target) >= 0 && rank(target) !== rank(from),
      }
    case 'no_cycles':
      return { type: 'cycles' }
    case 'beside':
      return { type: 'beside', names: listOf(value) }
    case 'max_lines':
    case 'max_files':
      return { type: claim === 'max_lines' ? 'lines' : 'files', most: Number(value) }
  }
}

function anyOf(tests: readonly Test[]): Test {
  return (path) => tests.some((test) => test(path))
}

/** Case does not count, because on some disks two spellings are one file. A pattern that ends with "/" means everything in the folder. */
function globOf(pattern: string): Test {
  const glob = new Bun.Glob(pattern.replace(/^\.\//, '').replace(/\/$/, '/**').toLowerCase())
  return (path) => glob.match(path.toLowerCase())
}
