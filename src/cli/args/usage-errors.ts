/** What a wrong command line is answered: what, the nearest right word, and where the help is. */

import {
  AliasNotFoundError,
  type ApplicationText,
  ArgumentScannerError,
  EnumValidationError,
  FlagNotFoundError,
  text_en,
  UnsatisfiedFlagError,
  UnsatisfiedPositionalError,
} from '@stricli/core'
import { didYouMean } from '../../kit/did-you-mean.ts'
import { silence } from '../exit.ts'
import { exitOf } from '../trouble.ts'
import { pasteable } from './shell-quote.ts'

export function wording(words: readonly string[]): ApplicationText {
  return {
    ...text_en,
    exceptionWhileRunningCommand: (error) => exitOf(error).message || silence,
    exceptionWhileLoadingCommandFunction: (error) => exitOf(error).message,
    exceptionWhileParsingArguments: (error) =>
      `error: ${wrongArguments(error)}\nSee: braidclaw ${route(words)}--help${question(words) || unescaped(words)}`,
    noCommandRegisteredForInput: ({ input, corrections }) => unknownCommand(words, input, corrections),
  }
}

function unknownCommand(words: readonly string[], input: string, corrections: readonly string[]): string {
  const near = corrections.map((word) => `"${word.replaceAll('`', '')}"`)
  const meant = near.length > 0 ? `; did you mean ${near.join(' or ')}?` : ''
  if (words[0] !== input) return `error: "${words[0]}" has no command "${input}"${meant}\nSee: braidclaw ${words[0]} --help`
  if (input.startsWith('-')) return `error: no flag "${input}" without a command\nSee: braidclaw --help`
  return `error: no command "${input}"${meant}\nSee: braidclaw --help${question(['agent', ...words])}`
}

/** Words after `agent` that are no flags are most likely what someone wanted to ask. */
function question([command, ...rest]: readonly string[]): string {
  const spoken = rest.filter((word) => !word.startsWith('-')).join(' ')
  const asks = command === 'agent' && spoken !== '' && !rest.some((word) => word.startsWith('-'))
  return asks ? `. To ask something: braidclaw agent -m ${pasteable([spoken])}` : ''
}

/** A command whose flags were taken for ours. */
function unescaped([command, sub, ...rest]: readonly string[]): string {
  const [first = '-'] = rest
  if (command !== 'policy' || sub !== 'explain' || first.startsWith('-')) return ''
  return `. A command goes behind --: braidclaw policy explain -- ${pasteable(rest)}`
}

const groups = ['config', 'provider', 'tool', 'memory', 'receipt', 'policy', 'session', 'approvals', 'run', 'bridge']

/** The command, with its sub-command where it has some. */
function route([command = '', sub = '']: readonly string[]): string {
  return groups.includes(command) ? `${command} ${/^[a-z]/.test(sub) ? `${sub} ` : ''}` : `${command} `
}

function wrongArguments(error: unknown): string {
  if (!(error instanceof ArgumentScannerError)) return exitOf(error).message
  const text = plainly(error) ?? error.message
  return text.charAt(0).toLowerCase() + text.slice(1)
}

/** The flag as it is typed; the rest is well said by the parser. Its own helper goes by class names, which the executable has no more. */
function plainly(error: ArgumentScannerError): string | undefined {
  if (error instanceof FlagNotFoundError) {
    const near = error.corrections.map((name) => `--${name}`)
    return `no flag "--${error.input}"${didYouMean(`--${error.input}`, [...near, '--help'])}`
  }
  if (error instanceof AliasNotFoundError) return `no flag "-${error.input}"`
  if (error instanceof UnsatisfiedFlagError) return `--${error.externalFlagName} needs a value`
  if (error instanceof UnsatisfiedPositionalError) return `<${error.placeholder}> is missing`
  if (!(error instanceof EnumValidationError)) return undefined
  const { externalFlagName, input, values } = error
  return `--${externalFlagName} is one of ${values.join(', ')}; got "${input}"${didYouMean(input, values)}`
}
