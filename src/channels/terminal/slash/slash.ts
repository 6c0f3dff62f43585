/** Interprets what a person types in a conversation: a command that begins with a slash, or a message. */

import type { Conversation } from '../../../host/api.ts'
import { questionFold } from '../../../host/changes/change-lines.ts'
import { cut, didYouMean, visible } from '../../../kit/text.ts'
import { sopCommand } from '../../../sop/serve-sops.ts'
import { jobsCommand, statusAnswer } from '../../jobs-command.ts'
import { coloured, wantsColor } from '../printer.ts'
import type { LineOutcome, Slash, SlashAnswer } from './contract.ts'
import { conversationAnswers } from './conversations.ts'
import type { furtherAnswers } from './further-commands.ts'
import { differenceLines, pastChanges } from './past-changes.ts'

const further =
  (command: keyof typeof furtherAnswers): SlashAnswer =>
  async (typed, argument) =>
    (await import('./further-commands.ts')).furtherAnswers[command](typed, argument)

const tools: SlashAnswer = async ({ conversation }) =>
  (await conversation.tools()).tools.map((tool) => `  ${tool.name.padEnd(14)} ${tool.risk.padEnd(7)} ${tool.description}\n`).join('')
const clear: SlashAnswer = ({ replace }) => replace({}).then(() => 'a new conversation begins\n')
const jobs: SlashAnswer = async ({ line, conversation }) => `${await jobsCommand(line, conversation, 'you')}\n`
const sop: SlashAnswer = async ({ line, host }) => `${await sopCommand(line, host, 'terminal', { mayApprove: true })}\n`
const status: SlashAnswer = async ({ host }) => `${statusAnswer((await host.schedules()).store.channels.troubles(), false)}\n`

/** A row of a command that is not answered by a text has no answer. */
type SlashRow = readonly [usage: string, meaning: string, answer?: SlashAnswer]

const groups: { readonly [title: string]: readonly SlashRow[] } = {
  'This conversation': [
    ['/rename NAME', 'give it a name; by itself it has its first words', conversationAnswers.rename],
    ['/fork [TURN]', 'go on in a copy, up to now or to that turn; this one stays as it is', conversationAnswers.fork],
    ['/export [FILE]', 'write it as Markdown, or as JSON to FILE.json', conversationAnswers.export],
    ['/context', 'show what fills the window of the model', further('/context')],
    ['/compact [keep WORDS]', 'summarise all but the latest turn now', further('/compact')],
    ['/cost', 'show what it has cost, and what today has', further('/cost')],
    ['/continue', 'continue the last turn, which was interrupted'],
    ['/clear', 'begin a new conversation (the old one stays in memory)', clear],
  ],
  'Earlier ones': [
    ['/resume [WORDS]', 'choose an earlier conversation and go on in it', conversationAnswers.resume],
    ['/memory QUERY', 'search all conversations', memory],
  ],
  Changes: [
    ['/changes', 'list what was changed, latest first', pastChanges.list],
    ['/diff [NUMBER]', 'show what was changed, exactly', pastChanges.diff],
    ['/undo [NUMBER]', 'take changes back (braidclaw undo --help)', pastChanges.undo],
  ],
  'Model and permissions': [
    ['/model [PROVIDER/MODEL]', 'switch to another model; alone, list them', further('/model')],
    ['/effort [LEVEL|default]', 'set how much it reasons; alone, show it', further('/effort')],
    ['/auto [on|off]', 'run commands and apply harmless changes without asking', auto],
    ['/policy', 'autonomy and workspace boundary', policy],
    ['/tools', 'list the active tools', tools],
    ['/mcp [approve ID]', 'list the MCP servers, or approve what one offers now', mcp],
  ],
  Work: [
    ['/jobs [stop ID]', 'list the commands in the background, or stop one', jobs],
    ['/sop [NAME KEY=VALUE…]', 'list procedures, their latest runs and questions, or begin one', sop],
    ["/wiggum --check 'COMMAND' TASK", 'work in a copy until the checks pass (docs/wiggum.md)', further('/wiggum')],
    ['/status', 'list the channels of running servers that do not work', status],
  ],
  Other: [
    ['/help', 'this list', help],
    ['/exit', 'leave (also Ctrl-D)'],
  ],
}

export const slashCommands = Object.values(groups).flat()

const nameIn = ([usage]: SlashRow) => usage.split(' ')[0] ?? usage
export const slashNames = slashCommands.map(nameIn)

/** Interprets a line in the conversation: a slash command for us, or a message for the agent. */
export async function slash(typed: Slash): Promise<LineOutcome> {
  const { line, setup, conversation } = typed
  // A path, and pasted text of several lines, is a message.
  if (!/^\/[\w:-]*(?: .*)?$/.test(line)) return 'message'
  const { write } = setup.context.process.stdout
  const [command = '', ...rest] = line.split(/\s+/)
  if (command === '/exit' || command === '/quit') return 'exit'
  if (command === '/continue') return 'continue'
  const [, , answer] = slashCommands.find((row) => nameIn(row) === command) ?? []
  if (answer) {
    write(await answer(typed, rest.join(' ')))
    return 'done'
  }
  const own = (await ownCommands(conversation)).map(nameIn)
  if (own.includes(command)) return 'message'
  write(`no command "${command}"${didYouMean(command, [...slashNames, ...own])} (/help lists them)\n`)
  return 'done'
}

const answersHelp = `@PATH adds a file or folder to a message. ! COMMAND runs a command, and the
next message can be about its output. Answers to [y/N/a]: y allows once, a from
now on, n (with a reason, if you like) or anything else denies; ? lists the keys.
`

async function help({ conversation }: Slash): Promise<string> {
  const own = await ownCommands(conversation)
  const all = { ...groups, ...(own.length === 0 ? {} : { 'Your own': own }) }
  const rowText = ([usage, meaning]: SlashRow) => `  ${usage.padEnd(24)} ${meaning}\n`
  const lists = Object.entries(all).map(([title, rows]) => `${title}\n${rows.map(rowText).join('')}`)
  return `${lists.join('')}${answersHelp}`
}

/** Switches whether commands and harmless changes are asked about, as `--auto` does, for the rest of this conversation. */
async function auto({ setup, replace }: Slash, argument: string): Promise<string> {
  if (argument !== '' && argument !== 'on' && argument !== 'off') return 'usage: /auto, /auto on or /auto off\n'
  if (argument !== '') await replace({ approveAllMedium: argument === 'on' })
  const isOn = argument === '' ? setup.config.security.approveAllMedium : argument === 'on'
  return isOn
    ? 'auto is on: commands and harmless changes are not asked about; /auto off\n'
    : 'auto is off: it is asked as the policy says; /auto on\n'
}

/** Returns the commands of files and skills as lines of /help. */
async function ownCommands({ commands }: Conversation): Promise<readonly SlashRow[]> {
  const list = (await commands())?.list ?? []
  return list.map(({ usage, description }) => [`/${visible(usage)}`, cut(visible(description), 100)])
}

async function mcp({ setup, ask }: Slash, words: string): Promise<string> {
  const { process, env } = setup.context
  const { mcpCommand } = await import('../../mcp-command.ts')
  return mcpCommand(setup, words, ask, (set) => process.stdout.write(coloured(differenceLines(set, questionFold), wantsColor(env))))
}

async function memory({ conversation: { search } }: Slash, query: string): Promise<string> {
  if (query === '') return 'usage: /memory QUERY\n'
  const found = await search({ query, limit: 10 })
  if (found.length === 0) return 'nothing found\n'
  return found.map(({ conversationId, role, snippet }) => `  ${conversationId} ${role}: ${snippet}\n`).join('')
}

async function policy({ conversation }: Slash): Promise<string> {
  const { policy } = await conversation.tools()
  return [
    `autonomy:   ${policy.autonomy}`,
    `workspace:  ${policy.workspace}${policy.workspaceOnly ? ' (nothing outside it)' : ' (paths outside it are allowed)'}`,
    `forbidden:  ${policy.forbiddenPaths.join(' ')}`,
    `commands:   never ${policy.forbiddenCommands.join(' ')}`,
    '',
  ].join('\n')
}
