/** Decides whether a command line names a command, asks for help or is a question; when it is ambiguous, it suggests what to type. */

import { didYouMean, nearest } from '../../kit/text.ts'
import { quoteText } from '../../security/command/syntax/quote.ts'
import { aloneIn, below, type Flags, isRunnable, type List, type Listed, lastWord, named, type Runnable } from './command.ts'
import type { Neighbours } from './help.ts'
import { scan } from './scan.ts'

type ResolvedCommand =
  | { readonly kind: 'run'; readonly row: Runnable; readonly words: readonly string[] }
  /** Without a row: the first page, or with `all` the page that lists every command. */
  | { readonly kind: 'help'; readonly row?: Listed; readonly all?: boolean }
  | { readonly kind: 'version' }
  | { readonly kind: 'doubt'; readonly message: string }

const longHelps = ['--help-all', '--helpAll', '-H']
const helps = ['--help', '-h', ...longHelps]

type Around = {
  readonly stdin: Stdin
  /** Needed where the first word may be a command of another program. */
  readonly neighbours?: Neighbours
}

/** Tells whether the first word that is not a flag looks like a command, and the line begins with none of ours. */
export function mayBeForeign(list: List, flags: Flags, words: readonly string[]): boolean {
  if (named(list, words)) return false
  const end = words.indexOf('--')
  const [asked] = scan({ flags, args: asking }, words.slice(0, end < 0 ? words.length : end)).words
  return asked !== undefined && isBare(asked)
}

/** Treats a line that names no command as a question, with the flags of the filter. */
export function resolveCommand(list: List, flags: Flags, words: readonly string[], around: Around): ResolvedCommand {
  const { stdin } = around
  const [first] = words
  if (first === undefined) return stdin === 'terminal' ? { kind: 'help' } : toFilter(list, words)
  if (first === 'help') return helpOf(list, words.slice(1))
  if (helps.includes(first)) return { kind: 'help', all: longHelps.includes(first) }
  if (first === '-v' || first === '--version') return { kind: 'version' }
  const found = named(list, words)
  if (found) return commandIn(list, found.row, found.rest)
  if (/^--\w/.test(first) && nearest(first, ['--help', '--version']))
    return doubt(`no flag "${first}"${didYouMean(first, ['--help', '--version'])} See: braidclaw --help`)
  if (first === 'version' && words.length === 1) return { kind: 'version' }
  const message = isBare(first) ? noCommand(list, flags, words, around) : undefined
  return message === undefined ? (afterFlags(list, flags, words, around) ?? toFilter(list, words)) : doubt(message)
}

function toFilter(list: List, words: readonly string[]): ResolvedCommand {
  const found = named(list, ['filter'])
  return found ? commandIn(list, found.row, words) : { kind: 'help' }
}

/** True for a word that may be a command: letters and hyphens only. */
function isBare(word: string): boolean {
  return /^[a-z][a-z-]*$/i.test(word)
}

function helpOf(list: List, words: readonly string[]): ResolvedCommand {
  if (words.length === 0 || words.join(' ') === 'all') return { kind: 'help', all: words.length > 0 }
  const found = named(list, words)
  if (found) return isRunnable(found.row) ? { kind: 'help', row: found.row } : commandIn(list, found.row, [...found.rest, '--help'])
  const [word = ''] = words
  return doubt(`no command "${word}"${didYouMean(word, ['all', ...topNames(list)])}\nSee: braidclaw --help`)
}

function commandIn(list: List, row: Listed, words: readonly string[]): ResolvedCommand {
  if (isRunnable(row)) return running(row, words)
  const [word] = words
  const alone = aloneIn(list, row)
  if (word !== undefined && helps.includes(word)) return { kind: 'help', row }
  if (alone && (word === undefined || !isBare(word))) return running(alone, words)
  if (word === undefined) return { kind: 'help', row }
  if (word.startsWith('-')) return doubt(`no flag "${word}" before a command of "${row.name}"\nSee: braidclaw ${row.name} --help`)
  const names = below(list, row.name).map(({ name }) => lastWord(name))
  return doubt(`"${row.name}" has no command "${word}"${didYouMean(word, names) || '.'} See: braidclaw ${row.name} --help`)
}

function running(row: Runnable, words: readonly string[]): ResolvedCommand {
  const end = words.indexOf('--')
  return words.slice(0, end < 0 ? words.length : end).some((word) => helps.includes(word))
    ? { kind: 'help', row }
    : { kind: 'run', row, words }
}

/** Returns the reason why a line that starts with this word is not a question. */
function noCommand(list: List, flags: Flags, words: readonly string[], around: Around): string | undefined {
  const [first = '', second = ''] = words
  const { words: asked, unsure } = scan({ flags, args: asking }, words)
  const foreign = elsewhere(unsure ? words : asked, around)
  if (foreign !== undefined) return foreign
  const meant = similar(first, [...topNames(list), 'help'])
  const isCommand = meant !== undefined && (isAlone(flags, words) || below(list, meant).some(({ name }) => lastWord(name) === second))
  if (isCommand) return sentence(unsure ? words : asked, `did you mean "${meant}"? See: braidclaw --help`)
  return unknownWord(words, around.stdin)
}

/** A word among others is part of the question. */
function isAlone(flags: Flags, words: readonly string[]): boolean {
  const { unsure, faults, words: asked } = scan({ flags, args: asking }, words)
  return unsure || faults.length > 0 || asked.filter((word) => word !== '').length === 1
}

/** Detects flags followed by a single word that is, or resembles, a command: the command has to come first. */
function afterFlags(list: List, flags: Flags, words: readonly string[], around: Around): ResolvedCommand | undefined {
  if (words[0]?.startsWith('-') !== true) return undefined
  const { escaped, faults, words: asked } = scan({ flags, args: asking }, words)
  const [word, ...more] = asked
  if (escaped || faults.length > 0 || word === undefined || !isBare(word)) return undefined
  const foreign = more.length > 0 ? elsewhere(asked, around) : undefined
  if (foreign !== undefined) return doubt(foreign)
  if (more.length > 0) return undefined
  const names = topNames(list)
  const meant = names.includes(word) ? word : similar(word, names)
  if (meant === undefined) return undefined
  const others = pasteable(words.filter((each) => each !== word))
  return doubt(
    `did you mean the command "${meant}"? It comes first: braidclaw ${meant} ${others}. To ask the word: braidclaw ${others} -- ${word}`,
  )
}

const asking = { message: { type: 'text', about: '', many: true, optional: true } } as const

/**
 * Finds a command that differs by one typing error, or begins with the word (at least four letters). Two letters resemble too many
 * commands.
 */
function similar(word: string, commands: readonly string[]): string | undefined {
  if (word.length < 3) return undefined
  return nearest(word, commands) ?? (word.length < 4 ? undefined : commands.find((command) => command.startsWith(word.toLowerCase())))
}

function topNames(list: List): readonly string[] {
  return below(list).map(({ name }) => name)
}

function doubt(what: string): ResolvedCommand {
  return { kind: 'doubt', message: `error: ${what}\n` }
}

/** Describes stdin. When it carries data, a word is an instruction for that data. */
export type Stdin = 'terminal' | 'data' | 'nothing'

/** Returns what does here the work of another program's command. Beside data a word is an instruction, unless a sub-command follows. */
function elsewhere(words: readonly string[], { stdin, neighbours }: Around): string | undefined {
  if (neighbours === undefined) return undefined
  const { everydayCommands, strangeCommands, subcommands } = neighbours
  const [typed = '', second] = words
  const isGroup = second !== undefined && subcommands.includes(second)
  const known = { ...everydayCommands, ...strangeCommands }
  const word = Object.hasOwn(known, typed.toLowerCase()) || !isGroup ? typed.toLowerCase() : (similar(typed, Object.keys(known)) ?? '')
  if (!Object.hasOwn(known, word) || (stdin === 'data' && !isGroup)) return undefined
  if (second !== undefined && !isGroup && !Object.hasOwn(strangeCommands, word)) return undefined
  return sentence(words, known[word] ?? '')
}

/** A single word typed at a terminal most likely means a command; a script may ask a model one word. */
function unknownWord(words: readonly string[], stdin: Stdin): string | undefined {
  return stdin === 'terminal' && words.length === 1 ? sentence(words, 'all commands: braidclaw help all') : undefined
}

function sentence(words: readonly string[], what: string): string {
  return `no command "${words[0]}"; ${what}. To ask it as a question: braidclaw agent -m ${pasteable([words.join(' ')])}`
}

/** Quotes the words so that the shell passes exactly these words. */
export function pasteable(words: readonly string[]): string {
  return words.map(quoteText).join(' ')
}
