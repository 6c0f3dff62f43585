/** Whether a command line names a command or asks a question; in doubt, what to write instead. */

import { didYouMean, nearest } from '../../kit/did-you-mean.ts'
import { isBare, plainQuestion } from '../plain.ts'
import { elsewhere, type Stdin, unknownWord } from './lone-word.ts'
import { pasteable } from './shell-quote.ts'

export type Meaning =
  | { readonly kind: 'command' | 'filter'; readonly words: readonly string[] }
  | { readonly kind: 'doubt'; readonly message: string }

/** Answered by the parser itself, whatever the command. */
const forAll = ['--help', '-h', '--help-all', '--helpAll', '-H', '--version', '-v']

export type Commands = {
  readonly names: readonly string[]
  /** The sub-commands of a command. */
  readonly under: (name: string) => readonly string[]
  /** Whether it does something without a sub-command as well. */
  readonly mayStandAlone: (name: string) => boolean
}

/** The words that are returned are for the parser. */
export function meaningOf(words: readonly string[], { names: commands, under, mayStandAlone }: Commands, stdin: Stdin): Meaning {
  const [first, second = ''] = words
  if (first === undefined) return { kind: 'command', words: ['--help'] }
  if (first === 'help') return { kind: 'command', words: [...words.slice(1), '--help'] }
  if (forAll.includes(first)) return { kind: 'command', words }
  if (commands.includes(first)) return strangeTo(mayStandAlone(first) ? under(first) : [], first, second) ?? { kind: 'command', words }
  if (/^--\w/.test(first) && nearest(first, ['--help', '--version']))
    return doubt(`no flag "${first}"${didYouMean(first, ['--help', '--version'])} See: braidclaw --help`)
  if (first === 'version' && words.length === 1) return { kind: 'command', words: ['--version'] }
  const foreign = isBare(first) ? elsewhere(words, stdin) : undefined
  if (foreign !== undefined) return doubt(foreign)
  const meant = isBare(first) ? similar(first, [...commands, 'help']) : undefined
  if (meant !== undefined && (isAlone(words) || under(meant).includes(second)))
    return doubt(
      `no command "${first}"; did you mean "${meant}"? See: braidclaw --help. To ask it all the same: braidclaw -- ${pasteable(words)}`,
    )
  const unknown = isBare(first) ? unknownWord(words, stdin) : undefined
  if (unknown !== undefined) return doubt(unknown)
  return lone(words, commands) ?? { kind: 'filter', words: ['filter', ...words] }
}

/** Among more words it is part of what is asked. */
function isAlone(words: readonly string[]): boolean {
  return (plainQuestion(words)?.words.length ?? 1) === 1
}

/** The parser would take a mistyped sub-command for an argument of the one that may be left out. */
function strangeTo(subcommands: readonly string[], first: string, second: string): Meaning | undefined {
  if (subcommands.length === 0 || !isBare(second) || subcommands.includes(second)) return undefined
  return doubt(`"${first}" has no command "${second}"${didYouMean(second, subcommands) || '.'} See: braidclaw ${first} --help`)
}

/** Flags, and then a single word that is a command, or nearly one: commands come first. */
function lone(words: readonly string[], commands: readonly string[]): Meaning | undefined {
  const question = plainQuestion(words)
  const [word, ...more] = question?.words ?? []
  if (question?.escaped || word === undefined || more.length > 0 || word === words[0] || !isBare(word)) return undefined
  const meant = commands.includes(word) ? word : similar(word, commands)
  if (meant === undefined) return undefined
  const others = pasteable(words.filter((each) => each !== word))
  return doubt(
    `did you mean the command "${meant}"? It comes first: braidclaw ${meant} ${others}. To ask the word: braidclaw ${others} -- ${word}`,
  )
}

/** One slip away, or the first four letters of it. Two letters are like too much. */
function similar(word: string, commands: readonly string[]): string | undefined {
  if (word.length < 3) return undefined
  return nearest(word, commands) ?? (word.length < 4 ? undefined : commands.find((command) => command.startsWith(word.toLowerCase())))
}

function doubt(what: string): Meaning {
  return { kind: 'doubt', message: `error: ${what}\n` }
}
