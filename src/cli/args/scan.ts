/** Parses the words of a command line into flags and arguments, and reports all errors at once. */

import { didYouMean, nearest } from '../../kit/text.ts'
import { type Argument, type Arguments, type Flag, type Flags, spelled } from './command.ts'

export type Scanned = {
  readonly flags: { readonly [name: string]: unknown }
  readonly args: { readonly [name: string]: unknown }
  /** The flags that the line contains. */
  readonly given: readonly string[]
  /** The words that are not flags, in order. */
  readonly words: readonly string[]
  /** True when `--` ended the flags. */
  readonly escaped: boolean
  /** The flag that takes the next word as its value. */
  readonly open?: string
  /** True when a flag is unknown, so that the word after it may or may not be its value. */
  readonly unsure: boolean
  readonly faults: readonly string[]
}

type ScanState = {
  readonly given: Map<string, string[]>
  readonly words: string[]
  readonly faults: string[]
  /** Known flags that replace misspelled ones. */
  readonly guessed: Set<string>
  escaped: boolean
  unsure: boolean
  open?: string
}

export function scan({ flags = {}, args = {} }: { readonly flags?: Flags; readonly args?: Arguments }, line: readonly string[]): Scanned {
  const found: ScanState = { given: new Map(), words: [], faults: [], guessed: new Set(), unsure: false, escaped: false }
  for (let at = 0; at < line.length; ) at += found.escaped ? takeWord(found, line[at]) : takeNext(found, flags, line, at)
  const { words, escaped, open, unsure, faults } = found
  const values: { [name: string]: unknown } = {}
  for (const [name, flag] of Object.entries(flags)) {
    const texts = found.given.get(name)
    if (texts) values[name] = flagValue(spelled(name), flag, texts, faults)
    else if ('default' in flag && flag.default !== undefined) values[name] = flag.default
  }
  return { flags: values, args: argumentsOf(args, found), given: [...found.given.keys()], words, escaped, unsure, faults, open }
}

/** True for `-m`, `-cm`, `-m=…`, `--message`, `--message=…`; false for `-`, `-5`, `- item` and `--two words`. */
export function isFlag(word: string): boolean {
  return /^(-[a-z]+|-[a-z]=.*|--[a-z][\w.-]*(=.*)?)$/is.test(word)
}

function takeWord(found: ScanState, word = ''): number {
  found.words.push(word)
  return 1
}

/** @returns how many words it consumed */
function takeNext(found: ScanState, flags: Flags, line: readonly string[], at: number): number {
  const word = line[at] ?? ''
  found.escaped = word === '--'
  if (found.escaped) return 1
  if (!isFlag(word)) return takeWord(found, word)
  const [typed = '', ...rest] = word.split('=')
  const names = namesOf(typed, flags, found)
  const value = word.includes('=') ? rest.join('=') : undefined
  for (const name of names.slice(0, -1)) takeFlag(found, flags, name, {})
  const last = names.at(-1)
  return 1 + (last === undefined ? 0 : takeFlag(found, flags, last, { own: value, next: line[at + 1], isLast: at === line.length - 1 }))
}

/** Returns each name of `-cm`. It reports an unknown name and uses the nearest known name in its place. */
function namesOf(typed: string, flags: Flags, found: ScanState): string[] {
  const long = typed.startsWith('--')
  const typedFlags = long ? [typed] : [...typed.slice(1)].map((letter) => `-${letter}`)
  return typedFlags.flatMap((spelling) => {
    const name = long ? nameOf(spelling, flags) : Object.keys(flags).find((each) => flags[each]?.short === spelling.slice(1))
    if (name !== undefined) return [name]
    const known = spellings(flags)
    const meant = long ? nearest(spelling.replace(/^--no-/, '--'), [...known, '--help']) : undefined
    found.faults.push(`no flag "${spelling}"${meant === undefined ? '' : `; did you mean "${meant}"?`}`)
    found.unsure = true
    const near = meant === undefined ? undefined : nameOf(meant, flags)
    if (near === undefined || found.given.has(near)) return []
    found.guessed.add(near)
    return [near]
  })
}

function nameOf(spelling: string, flags: Flags): string | undefined {
  const name = spelling.slice(2).replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())
  if (Object.hasOwn(flags, name)) return name
  return Object.keys(flags).find((each) => flags[each]?.also === name)
}

/** Returns every long flag as it is typed, second names included. */
function spellings(flags: Flags): string[] {
  return Object.entries(flags).flatMap(([name, { also }]) => [name, ...(also === undefined ? [] : [also])].map(spelled))
}

/** The text after a flag: `=…`, or the next word. */
type Behind = { readonly own?: string | undefined; readonly next?: string | undefined; readonly isLast?: boolean }

/** @returns 1 when the next word is the flag's value, else 0 */
function takeFlag(found: ScanState, flags: Flags, name: string, { own, next, isLast = false }: Behind): number {
  const takesValue = flags[name]?.type !== 'boolean'
  const follows = takesValue && own === undefined && next !== undefined && next !== '--' && !isFlag(next)
  const value = own ?? (takesValue ? (follows ? next : undefined) : 'true')
  if (value === undefined) {
    if (!found.guessed.has(name)) found.faults.push(`${spelled(name)} needs a value`)
    if (isLast) found.open = name
    return 0
  }
  found.given.set(name, [...(found.given.get(name) ?? []), value])
  return follows ? 1 : 0
}

function flagValue(name: string, flag: Flag, texts: readonly string[], faults: string[]): unknown {
  const [first = '', second] = texts
  if (flag.type !== 'boolean' && flag.many) return texts.map((text) => wordValue(name, flag, text, faults))
  if (second !== undefined)
    faults.push(flag.type === 'boolean' ? `${name} is given twice` : `${name} is given twice: "${first}" and "${second}"; pass one`)
  return flag.type === 'boolean' ? truth(name, first, faults) : wordValue(name, flag, first, faults)
}

function argumentsOf(rows: Arguments, { words, faults, unsure }: ScanState): { readonly [name: string]: unknown } {
  const values: { [name: string]: unknown } = {}
  const left = [...words]
  for (const [name, row] of Object.entries(rows)) {
    const texts = row.many ? left.splice(0) : left.splice(0, 1)
    const found = texts.map((text) => wordValue(`<${name}>`, row, text, faults))
    if (found.length === 0 && !row.optional) faults.push(`<${name}> is missing`)
    if (row.many || found.length > 0) values[name] = row.many ? found : found[0]
  }
  const [odd] = left
  if (odd !== undefined && !unsure) faults.push(`too many arguments: ${expected(rows)} expected, got "${odd}"`)
  return values
}

function expected(rows: Arguments): string {
  const names = Object.keys(rows).map((name) => `<${name}>`)
  return names.length === 0 ? 'none is' : `only ${names.join(' ')} ${names.length === 1 ? 'is' : 'are'}`
}

function wordValue(name: string, row: Exclude<Flag, { type: 'boolean' }> | Argument, text: string, faults: string[]): unknown {
  if (row.type === 'whole') return wholeNumber(name, row, text, faults)
  if (row.type === 'choice' && !row.values.includes(text))
    faults.push(`${name} is one of ${row.values.join(', ')}; got "${text}"${didYouMean(text, row.values)}`)
  return text
}

function wholeNumber(
  name: string,
  { min = 0, max = 999_999_999, unit }: { readonly min?: number; readonly max?: number; readonly unit?: string },
  text: string,
  faults: string[],
): number {
  const value = Number(text)
  if (!/^-?\d+$/.test(text)) faults.push(`${name}: "${text}" is not a whole number`)
  else if (value < min || value > max)
    faults.push(`${name}: ${text} is out of range; must be from ${min} to ${max}${unit === undefined ? '' : ` (${unit})`}`)
  return value
}

function truth(name: string, text: string, faults: string[]): boolean {
  const word = text.toLowerCase()
  if (!['true', 't', 'yes', 'y', 'on', '1', 'false', 'f', 'no', 'n', 'off', '0'].includes(word))
    faults.push(`${name} takes no value, or yes or no; got "${text}"`)
  return ['true', 't', 'yes', 'y', 'on', '1'].includes(word)
}
