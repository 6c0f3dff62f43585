/** Formats help pages, 80 columns wide, whose command lines are whole, and says what does here the work of other programs' commands and flags. */

import { version } from '../../../package.json'
import { defaultOf, type Row } from '../../kit/settings.ts'
import { limitRows } from '../../runtime/settings.ts'
import { exitCodeHelp } from '../exit.ts'
import {
  type AnyCommand,
  type Argument,
  below,
  type Flag,
  isRunnable,
  type List,
  type Listed,
  lastWord,
  type Runnable,
  spelled,
} from './command.ts'

const width = 80

/** Returns the first page: it fits a terminal of 24 lines, and each name in it is a command. */
export function firstPage(): string {
  const line = ([head, meaning]: HelpRow) => head.padEnd(30) + meaning
  const groups = Object.entries(everyday).flatMap(([title, rows]) => [
    title,
    ...rows.map(([head, meaning]) => line([`  ${head}`, meaning])),
  ])
  return page([`BraidClaw ${version}: an agent that acts only as your rules allow`, groups.join('\n'), further.map(line).join('\n')])
}

const everyday: { readonly [title: string]: readonly HelpRow[] } = {
  TALK: [
    ['agent', 'A conversation; -m TEXT: one turn; -c continues'],
    ['"What is 2+2?"', 'One answer on stdout; text on stdin is read, too'],
  ],
  'SET UP': [
    ['onboard, login, config', 'Connect a model; its key; settings'],
    ['tool, mcp, plugin, skill', 'What it can use: built in, yours, or of others'],
    ['check, hooks, policy, trust', 'What proves that work is done, and what may run'],
    ['doctor, update, completion', 'Find what is wrong; update; complete in your shell'],
  ],
  'LOOK BACK': [
    ['session, memory, run', 'What was said and done, with search'],
    ['changes, undo, approvals', 'What it changed; take it back; answer questions'],
    ['cost, budget', 'What was spent, and what is left'],
    ['receipt, replay, verify', 'Prove what happened'],
  ],
  SERVE: [
    ['serve, token, service', 'Over HTTP, with a page in the browser'],
    ['schedule, sop, daemon', 'At set times; in fixed steps; over FIFOs'],
    ['control, hostd', 'Several agents that take tasks from one place'],
    ['estop', 'Stop every tool of this home at once'],
  ],
}

const further: readonly HelpRow[] = [
  ['braidclaw COMMAND --help', 'Examples, flags and exit codes of a command'],
  ['braidclaw help all', 'All commands, more examples, all exit codes'],
]

/** Returns the page that lists every command. */
export async function allCommands(list: List): Promise<string> {
  const usage = await Promise.all(below(list).map((row) => usageInRoot(list, row)))
  return page([
    block('USAGE', [...usage, 'braidclaw help all', 'braidclaw --version']),
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
    wrapped('', 'Exit codes: braidclaw help all, or --help of a command'),
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
    table('FLAGS', [...Object.entries(flags).map(flagRow), helpRow, dashesRow]),
    ...(Object.keys(args).length > 0 ? [table('ARGUMENTS', Object.entries(args).map(argumentRow))] : []),
    exitBlock([0, 1, 2, ...(command.exits ?? [])]),
  ])
}

type HelpRow = readonly [head: string, meaning: string]

const helpRow: HelpRow = ['-h  --help', 'Print this help and exit']
const dashesRow: HelpRow = ['    --', 'The words after it are not flags, whatever they begin with']

function flagRow([name, flag]: readonly [string, Flag]): HelpRow {
  const many = flag.type !== 'boolean' && flag.many ? '...' : ''
  const short = flag.short === undefined ? '  ' : `-${flag.short}`
  const long = flag.also === undefined ? '' : `, or ${spelled(name)}`
  return [`${short} [${spelled(flag.also ?? name)}]${many}`, `${flag.about}${long}${limits(flag)}`]
}

function limits(flag: Flag): string {
  const values = flag.type === 'choice' ? flag.values.join('|') : ''
  const said = [
    // Many values may be broken over several lines.
    ...(values === '' ? [] : [values.length > width / 2 ? values.replaceAll('|', ' | ') : values]),
    ...(flag.type !== 'boolean' && flag.default !== undefined ? [`default = ${flag.default}`] : []),
    ...(flag.setting === undefined ? [] : [`instead of ${flag.setting}`]),
  ]
  return said.length === 0 ? '' : ` [${said.join(', ')}]`
}

function argumentRow([name, { about, optional, many }]: readonly [string, Argument]): HelpRow {
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

function commandTable(list: List): string {
  const rows = list.map(({ name, about }): HelpRow => [lastWord(name), about])
  return table('COMMANDS', rows)
}

function exitBlock(codes: NonNullable<AnyCommand['exits']>): string {
  const own = new Map(codes.map((code) => (typeof code === 'number' ? [code, undefined] : code)))
  const known = exitCodeHelp.filter(([code]) => own.has(code))
  const rows = known.map(([code, meaning]): HelpRow => [String(code).padStart(3), own.get(code) ?? meaning])
  return table('EXIT CODES', rows)
}

function table(title: string, rows: readonly HelpRow[]): string {
  const column = Math.max(...rows.map(([head]) => head.length)) + 2
  const lines = rows.map(([head, meaning]) => wrapped(head.padEnd(column), meaning, 2))
  return block(title, lines)
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

const connect = 'to connect a model: braidclaw onboard'
const talk = 'for a conversation: braidclaw agent; for one turn: braidclaw agent -m TEXT'
const earlier = 'earlier conversations: braidclaw memory list; to continue the latest: braidclaw agent -c'
const models = 'who can be asked: braidclaw provider list; to choose: -m PROVIDER/MODEL'
const update = 'how to update: braidclaw update'
const check = 'to check everything: braidclaw doctor'
const server = 'to answer over HTTP: braidclaw serve'
const changes = 'what waits for a decision: braidclaw changes list, braidclaw approvals list'
const tools =
  'MCP servers: braidclaw mcp list (docs/mcp.md); plugins: braidclaw plugin list (docs/plugins.md); programs of yours become tools: braidclaw tool list (docs/tools.md)'
const protocols = `other programs talk to it over HTTP: braidclaw serve (docs/gateway.md), or over lines of JSON: braidclaw stdio (docs/library.md); ${tools}`
const texts = 'instructions are texts that the agent reads (docs/project-instructions.md)'
const rules = 'rules and threads of your own: docs/rules.md, docs/threads.md'
const timed = 'what runs by the clock: braidclaw schedule list'
const move = 'to keep or bring a home: braidclaw home backup, braidclaw home restore'

type Hints = { readonly [word: string]: string }

/** Lists everyday words: a longer line that begins with one is a question, unless a sub-command follows. */
const everydayCommands: Hints = {
  ...{ auth: connect, signin: connect, setup: connect, configure: connect, key: connect, keys: connect },
  ...{ models, model: models, providers: models },
  ...{ upgrade: update, install: update },
  ...{ chat: talk, repl: talk, start: talk, ask: talk, prompt: talk, tui: talk, attach: talk },
  ...{ history: earlier, resume: earlier, continue: earlier, conversations: earlier, threads: earlier },
  ...{ gateway: server, web: server, dashboard: server, ui: server },
  ...{ status: check, info: check, debug: check },
  ...{ stop: 'to stop every tool: braidclaw estop', kill: 'to stop every tool: braidclaw estop' },
  ...{ settings: 'the settings: braidclaw config show', permissions: 'what is permitted: braidclaw security show' },
  ...{ channels: 'the channels: braidclaw config show', logs: 'the log of the service: braidclaw service logs' },
  ...{ usage: 'what was spent: braidclaw cost', stats: 'what was spent: braidclaw cost', tasks: timed, jobs: timed },
  commands: 'all commands: braidclaw help all',
}

/** Lists words with which no question begins by itself. */
const strangeCommands: Hints = {
  ...{ plugins: tools, extension: tools, extensions: tools, integrations: tools, connectors: tools },
  ...{ 'mcp-server': 'to serve MCP clients: braidclaw mcp serve', 'app-server': protocols, acp: protocols },
  ...{ skills: 'the skills: braidclaw skill list (docs/skills.md)', sops: 'the procedures: braidclaw sop list' },
  ...{ recipe: texts, recipes: texts, templates: 'the templates: braidclaw template list' },
  ...{ hook: rules, webhooks: rules },
  wiggum: 'to work until checks pass: braidclaw agent --wiggum --check COMMAND "task"',
  ...{ cron: timed, loop: timed, heartbeat: timed },
  ...{ exec: talk, eval: talk, plan: 'to look without changing anything: braidclaw agent --autonomy readonly' },
  ...{ review: changes, apply: changes, diff: changes, revert: 'to take changes back: braidclaw undo' },
  ...{ session: earlier, sessions: earlier, fork: earlier, agents: 'each agent has a name: braidclaw agent --agent NAME' },
  ...{ import: move, export: move, migrate: move },
}

const subcommands: readonly string[] = [
  ...['list', 'ls', 'login', 'logout', 'add', 'remove', 'rm', 'delete', 'show', 'status', 'set', 'get', 'test', 'now'],
  ...['install', 'uninstall', 'enable', 'disable', 'run', 'new', 'create', 'init'],
]

const level = '--autonomy full (docs/security.md says what that means)'
const model = '-m PROVIDER/MODEL, or --model'
const text = 'the answer is printed as it is: braidclaw "question"'
const picture = '--image FILE'
const filter = 'a flag of the filter: braidclaw "question" (docs/filter.md)'
const ofFilter = Object.fromEntries('-x --extract --xl --schema -o --option -t -u --attachment'.split(' ').map((flag) => [flag, filter]))
const system = '-s, a system prompt: a text, or a file'
const noColor = 'NO_COLOR=1 in the environment'

/** Lists the flags of turns. */
const strangeFlags: Hints = {
  ...{ '--prompt': 'agent -m "message"', '--non-interactive': text, '--headless': text },
  ...{ '--silent': '-q, or --quiet' },
  ...ofFilter,
  ...{ '-a': `--autonomy LEVEL, or --auto; a file: ${filter}`, '--image': picture, '-i': picture },
  ...{ '--output': '--json, or > FILE', '-f': '-a FILE, or < FILE', '--file': '-a FILE, or < FILE', '-T': '--tools default' },
  ...{ '--fragment': '-a FILE', '--save': 'braidclaw template new NAME' },
  ...{ '--system-prompt': system, '--append-system-prompt': system, '--allowed-tools': '--tools', '--allowedTools': '--tools' },
  ...{ '--yolo': level, '--full-auto': level, '-y': '--auto', '--yes': '--auto', '--dangerously-skip-permissions': level },
  ...{ '--permission-mode': '--autonomy LEVEL', '--ask-for-approval': '--autonomy LEVEL', '--provider': model },
  ...{ '--cd': '-C DIR', '--cwd': '-C DIR', '--dir': '-C DIR', '-d': '-C DIR', '-r': '--resume CONVERSATION' },
  ...{ '-V': '-v, or --version', '--no-color': noColor, '--color': `${noColor} switches it off` },
  ...{ '--verbose': 'BRAIDCLAW_LOG_LEVEL=debug', '--debug': 'BRAIDCLAW_LOG_LEVEL=debug', '--api-key': 'braidclaw onboard keeps a key' },
}

/** Lists the commands of other programs, each with what does the same here. */
export const neighbours = { everydayCommands, strangeCommands, subcommands } as const
export type Neighbours = typeof neighbours

/** Adds to an unknown flag of a turn what the flag of another program is called here. */
export function withHint({ flags = {} }: Pick<AnyCommand, 'flags'>, fault: string): string {
  const [, flag = ''] = /^no flag "(-[^"]+)"/.exec(fault) ?? []
  return 'outputFormat' in flags && Object.hasOwn(strangeFlags, flag) ? `no flag "${flag}"; here: ${strangeFlags[flag]}` : fault
}

/** The limits that end a turn, or a call in it. */
const shown = ['max_tool_rounds', 'max_same_results', 'shell_timeout_s', 'shell_timeout_max_s', 'tool_timeout_s', 'max_run_seconds']

/** Formats, for example, `max_tool_rounds 100, shell_timeout_s 120, …`. */
export function limitsHelp(): string {
  const rows = Object.entries<Row>(limitRows).filter(([key]) => shown.includes(key))
  const limits = rows.map(([key, row]) => `${key} ${defaultOf(row) ?? row.absent}`).join(', ')
  return `Limits, all of them keys of [limits] in config.toml ("braidclaw config show" prints those in force): ${limits}. A turn that reaches one says which it was.`
}
