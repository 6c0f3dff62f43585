/** Formats help pages, 80 columns wide; it does not break command lines, so that users can copy them. */

import { exitCodeHelp } from '../exit.ts'
import type { AnyCommand, Argument, Flag } from './command.ts'
import { below, isRunnable, type List, type Listed, lastWord, type Runnable, spelled } from './command.ts'
import { type Neighbours, neighbours } from './neighbours.ts'

const width = 80

/** Returns the help page of the whole program. */
export async function rootHelp(list: List): Promise<string> {
  const usage = await Promise.all(below(list).map((row) => usageInRoot(list, row)))
  return page([
    block('USAGE', [...usage, 'braidclaw --help', 'braidclaw --version']),
    wrapped(
      '',
      'BraidClaw takes a message, thinks with a model, acts through gated tools inside a workspace, remembers, and can prove what it did.',
    ),
    block('EXAMPLES', examples),
    exitBlock(exitCodeHelp.map(([code]) => code)),
    table('FLAGS', [helpRow, ['-v  --version', 'Print the version and exit'], dashesRow]),
    commandTable(below(list)),
  ])
}

const examples = [
  'braidclaw "What is 2+2?"               # a question; only the answer is printed',
  'git diff | braidclaw -s "Review this"  # a filter; see braidclaw help filter',
  'braidclaw agent -m "What files are in this project?"',
  'git diff | braidclaw agent -m "Review this change"',
  'braidclaw agent                        # a conversation; /help lists its commands',
  'braidclaw policy explain -- rm -rf /   # what the gate says, and which rule',
  'braidclaw receipt verify',
]

/** Returns the help page of a command or a group. */
export async function helpOf(list: List, row: Listed): Promise<string> {
  return isRunnable(row) ? commandHelp(row, await row.load()) : groupHelp(list, row)
}

async function groupHelp(list: List, { name, about }: Listed): Promise<string> {
  const rows = below(list, name)
  const usage = await Promise.all(rows.map((row) => (isRunnable(row) ? synopsis(row) : usageInRoot(list, row))))
  return page([
    block('USAGE', [...usage, `braidclaw ${name} --help`]),
    wrapped('', about),
    wrapped('', 'Exit codes: braidclaw --help, or --help of a command'),
    table('FLAGS', [helpRow, dashesRow]),
    commandTable(rows),
  ])
}

async function commandHelp({ name, about }: Runnable, { flags = {}, args = {}, ...command }: AnyCommand): Promise<string> {
  const details = await command.details?.()
  const usage = command.examples.flatMap(([line, does]) => [`braidclaw ${name} ${line}`.trimEnd(), `  ${does}`])
  return page([
    block('USAGE', [...usage, `braidclaw ${name} --help`]),
    wrapped('', about),
    ...(details === undefined ? [] : [wrapped('', details)]),
    table('FLAGS', [...Object.entries(flags).map(([flag, row]) => flagRow(flag, row)), helpRow, dashesRow]),
    ...(Object.keys(args).length > 0
      ? [
          table(
            'ARGUMENTS',
            Object.entries(args).map(([arg, row]) => argumentRow(arg, row)),
          ),
        ]
      : []),
    exitBlock([0, 1, 2, ...(command.exits ?? [])]),
  ])
}

type HelpRow = readonly [head: string, meaning: string]

const helpRow: HelpRow = ['-h  --help', 'Print this help and exit']
const dashesRow: HelpRow = ['    --', 'The words after it are not flags, whatever they begin with']

function flagRow(name: string, flag: Flag): HelpRow {
  const many = flag.type !== 'boolean' && flag.many ? '...' : ''
  const long = flag.also === undefined ? '' : `, or ${spelled(name)}`
  return [
    `${flag.short === undefined ? '  ' : `-${flag.short}`} [${spelled(flag.also ?? name)}]${many}`,
    `${flag.about}${long}${limits(flag)}`,
  ]
}

function limits(flag: Flag): string {
  const said = [
    ...(flag.type === 'choice' ? [choices(flag.values)] : []),
    ...(flag.type !== 'boolean' && flag.default !== undefined ? [`default = ${flag.default}`] : []),
    ...(flag.setting === undefined ? [] : [`instead of ${flag.setting}`]),
  ]
  return said.length === 0 ? '' : ` [${said.join(', ')}]`
}

/** Many values may be broken over several lines. */
function choices(values: readonly string[]): string {
  const all = values.join('|')
  return all.length > width / 2 ? values.join(' | ') : all
}

function argumentRow(name: string, { about, optional, many }: Argument): HelpRow {
  return [many ? `${name}...` : optional ? `[${name}]` : name, about]
}

/** Shows only the required arguments. */
async function synopsis({ name, load }: Runnable): Promise<string> {
  const { args = {} } = await load()
  const wanted = Object.entries(args).filter(([, { optional, many }]) => many || !optional)
  return ['braidclaw', name, ...wanted.map(([arg, { many }]) => `<${arg}>${many ? '...' : ''}`)].join(' ')
}

async function usageInRoot(list: List, row: Listed): Promise<string> {
  if (isRunnable(row)) return synopsis(row)
  const words = below(list, row.name).map(({ name }) => lastWord(name))
  return `braidclaw ${row.name} ${words.join('|')} ...`
}

function commandTable(rows: List): string {
  return table(
    'COMMANDS',
    rows.map(({ name, about }) => [lastWord(name), about]),
  )
}

function exitBlock(codes: NonNullable<AnyCommand['exits']>): string {
  const own = new Map(codes.map((code) => (typeof code === 'number' ? [code, undefined] : code)))
  const shown = exitCodeHelp.filter(([code]) => own.has(code))
  return table(
    'EXIT CODES',
    shown.map(([code, meaning]) => [String(code).padStart(3), own.get(code) ?? meaning]),
  )
}

function table(title: string, rows: readonly HelpRow[]): string {
  const column = Math.max(...rows.map(([head]) => head.length)) + 2
  return block(
    title,
    rows.map(([head, meaning]) => wrapped(head.padEnd(column), meaning, 2)),
  )
}

function block(title: string, lines: readonly string[]): string {
  return [title, ...lines.map((line) => `  ${line}`)].join('\n')
}

/** Indents continuation lines to the column of the text. */
function wrapped(head: string, text: string, indent = 0): string {
  const room = Math.max(width - indent - head.length, width / 2)
  const pad = ' '.repeat(indent + head.length)
  return head + Bun.wrapAnsi(text, room).replaceAll('\n', `\n${pad}`)
}

function page(blocks: readonly string[]): string {
  return `${blocks.join('\n\n')}\n`
}

/** Returns the commands and flags of other programs, with what does the same here. */
export function otherPrograms(): Neighbours {
  return neighbours
}

/** Adds to an unknown flag of a turn what the flag of another program is called here. */
export function withHint({ flags = {} }: Pick<AnyCommand, 'flags'>, fault: string): string {
  const [, flag = ''] = /^no flag "(-[^"]+)"/.exec(fault) ?? []
  return 'outputFormat' in flags && Object.hasOwn(neighbours.flags, flag) ? `no flag "${flag}"; here: ${neighbours.flags[flag]}` : fault
}
