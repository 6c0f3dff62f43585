/** Answers the completion scripts: it prints one candidate per line. */

import type { CliContext } from '../../channels/terminal/context.ts'
import { type AnyCommand, type Argument, aloneIn, below, type Flag, isRunnable, type List, lastWord, named, spelled } from './command.ts'
import { scan } from './scan.ts'

/** Follows "help" besides the commands. */
const everyCommand: Candidate = ['all', 'List every command']

type Candidate = readonly [word: string, about: string]

/** Prints each candidate with its description where the shell shows one. */
export async function complete(context: CliContext, list: List, shell: string, words: readonly string[]): Promise<void> {
  const found = await candidates(context, list, words)
  const between = shell === 'zsh' ? ':' : '\t'
  for (const [word, about] of found) {
    context.process.stdout.write(
      shell === 'bash' ? `${word}\n` : `${word.replaceAll(':', '\\:')}${between}${about.replaceAll('\n', ' ')}\n`,
    )
  }
}

async function candidates(context: CliContext, list: List, words: readonly string[]): Promise<readonly Candidate[]> {
  const partial = words.at(-1) ?? ''
  // Flags without a command belong to the filter.
  const before = words[0]?.startsWith('-') ? ['filter', ...words.slice(0, -1)] : words.slice(0, -1)
  const line = before[0] === 'help' ? before.slice(1) : before
  const found = named(list, line)
  if (!found)
    return line.length === 0 ? [...commandsAt(list, undefined, partial), ...starting(before.length > 0 ? [everyCommand] : [], partial)] : []
  const { row, rest } = found
  if (isRunnable(row)) return before[0] === 'help' ? [] : inCommand(context, await row.load(), rest, partial)
  const names = rest.length === 0 ? commandsAt(list, row.name, partial) : []
  const alone = aloneIn(list, row)
  return alone && before[0] !== 'help' ? [...names, ...(await inCommand(context, await alone.load(), rest, partial))] : names
}

function commandsAt(list: List, group: string | undefined, partial: string): readonly Candidate[] {
  return starting(
    below(list, group).map(({ name, about }) => [lastWord(name), about]),
    partial,
  )
}

async function inCommand(context: CliContext, { flags = {}, args = {} }: AnyCommand, before: readonly string[], partial: string) {
  const { open, unsure, escaped, given, words } = scan({ flags, args }, before)
  if (unsure || before.includes('--help') || before.includes('-h')) return []
  const opened = open === undefined ? undefined : flags[open]
  if (opened) return values(context, opened, partial)
  const next = Object.values(args)[words.length] ?? Object.values(args).findLast(({ many }) => many)
  const free = Object.entries(flags).filter(([name, flag]) => !given.includes(name) || (flag.type !== 'boolean' && flag.many))
  const dashed: Candidate[] = [
    ['--', 'The words after it are not flags'],
    ...free.map(([name, { about, also }]): Candidate => [spelled(also ?? name), about]),
  ]
  const candidates = escaped || (partial !== '' && !partial.startsWith('-')) ? [] : starting(dashed, partial === '-' ? '' : partial)
  return next ? [...candidates, ...(await values(context, next, partial))] : candidates
}

async function values(context: CliContext, row: Flag | Argument, partial: string): Promise<readonly Candidate[]> {
  const words = row.type === 'choice' ? row.values : await namesFor(context, row.complete, partial)
  return starting(
    words.map((word) => [word, row.about]),
    partial,
  )
}

async function namesFor(context: CliContext, complete: Flag['complete'], partial: string): Promise<readonly string[]> {
  if (typeof complete !== 'string') return (await complete?.(context, partial)) ?? []
  // Names of commands and flags are proposed without opening the home.
  return await (await import('./completions.ts')).namesInHome(complete, context, partial)
}

function starting(found: readonly Candidate[], partial: string): readonly Candidate[] {
  return found.filter(([word]) => word.startsWith(partial))
}
