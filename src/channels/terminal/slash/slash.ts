/** Interprets what a person types in a conversation: a command that begins with a slash, or a message. */

import type { Conversation } from '../../../host/api.ts'
import { questionFold } from '../../../host/changes/change-lines.ts'
import { cut, didYouMean, visible } from '../../../kit/text.ts'
import type { Policy } from '../../../security/policy.ts'
import { sopCommand } from '../../../sop/serve-sops.ts'
import { jobsCommand, statusAnswer } from '../../jobs-command.ts'
import { coloured, wantsColor } from '../printer.ts'
import type { LineOutcome, Slash, SlashAnswer } from './contract.ts'
import { conversationAnswers } from './conversations.ts'
import type { furtherAnswers } from './further-commands.ts'
import { differenceLines, pastChanges } from './past-changes.ts'

type SlashRow = readonly [usage: string, meaning: string]

const groups: { readonly [title: string]: readonly SlashRow[] } = {
  'This conversation': [
    ['/rename NAME', 'give it a name; by itself it has its first words'],
    ['/fork [TURN]', 'go on in a copy, up to now or to that turn; this one stays as it is'],
    ['/export [FILE]', 'write it as Markdown, or as JSON to FILE.json'],
    ['/context', 'show what fills the window of the model'],
    ['/compact [keep WORDS]', 'summarise all but the latest turn now'],
    ['/cost', 'show what it has cost, and what today has'],
    ['/continue', 'continue the last turn, which was interrupted'],
    ['/clear', 'begin a new conversation (the old one stays in memory)'],
  ],
  'Earlier ones': [
    ['/resume [WORDS]', 'choose an earlier conversation and go on in it'],
    ['/memory QUERY', 'search all conversations'],
  ],
  Changes: [
    ['/changes', 'list what was changed, latest first'],
    ['/diff [NUMBER]', 'show what was changed, exactly'],
    ['/undo [NUMBER]', 'take changes back (braidclaw undo --help)'],
  ],
  'Model and permissions': [
    ['/model [PROVIDER/MODEL]', 'switch to another model; alone, list them'],
    ['/effort [LEVEL|default]', 'set how much it reasons; alone, show it'],
    ['/auto [on|off]', 'run commands and apply harmless changes without asking'],
    ['/policy', 'autonomy and workspace boundary'],
    ['/tools', 'list the active tools'],
    ['/mcp [approve ID]', 'list the MCP servers, or approve what one offers now'],
  ],
  Work: [
    ['/jobs [stop ID]', 'list the commands in the background, or stop one'],
    ['/sop [NAME KEY=VALUE…]', 'list procedures, their latest runs and questions, or begin one'],
    ["/wiggum --check 'COMMAND' TASK", 'work in a copy until the checks pass (docs/wiggum.md)'],
    ['/status', 'list the channels of running servers that do not work'],
  ],
  Other: [
    ['/help', 'this list'],
    ['/exit', 'leave (also Ctrl-D)'],
  ],
}

export const slashCommands: readonly SlashRow[] = Object.values(groups).flat()

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
  const answer = answers[command]
  if (answer) {
    write(await answer(typed, rest.join(' ')))
    return 'done'
  }
  const own = (await ownCommands(conversation)).map(nameIn)
  if (own.includes(command)) return 'message'
  write(`no command "${command}"${didYouMean(command, [...slashNames, ...own])} (/help lists them)\n`)
  return 'done'
}

const further =
  (command: keyof typeof furtherAnswers): SlashAnswer =>
  async (typed, argument) =>
    (await import('./further-commands.ts')).furtherAnswers[command](typed, argument)

const past =
  (command: '/changes' | '/diff' | '/undo'): SlashAnswer =>
  ({ host, ask, conversation: { workspace }, setup }, which) =>
    pastChanges({ command, which, host, ask, workspace, color: wantsColor(setup.context.env) })

const answers: { readonly [command: string]: SlashAnswer } = {
  ...conversationAnswers,
  '/help': async ({ conversation }) => `${helpText(await ownCommands(conversation))}${answersHelp}`,
  '/clear': ({ replace }) => replace({}).then(() => 'a new conversation begins\n'),
  '/tools': async ({ conversation }) =>
    (await conversation.tools()).tools.map((tool) => `  ${tool.name.padEnd(14)} ${tool.risk.padEnd(7)} ${tool.description}\n`).join(''),
  '/memory': ({ conversation }, words) => (words === '' ? 'usage: /memory QUERY\n' : hits(conversation, words)),
  '/policy': async ({ conversation }) => policyLines((await conversation.tools()).policy),
  '/auto': auto,
  '/model': further('/model'),
  '/effort': further('/effort'),
  '/context': further('/context'),
  '/compact': further('/compact'),
  '/cost': further('/cost'),
  '/wiggum': further('/wiggum'),
  '/jobs': async ({ line, conversation }) => `${await jobsCommand(line, conversation, 'you')}\n`,
  '/sop': async ({ line, host }) => `${await sopCommand(line, host, 'terminal', { mayApprove: true })}\n`,
  '/mcp': mcp,
  '/status': async ({ host }) => `${statusAnswer((await host.schedules()).store.channels.troubles(), false)}\n`,
  '/changes': past('/changes'),
  '/diff': past('/diff'),
  '/undo': past('/undo'),
}

const answersHelp = `@PATH adds a file or folder to a message. ! COMMAND runs a command, and the
next message can be about its output. Answers to [y/N/a]: y allows once, a from
now on, n (with a reason, if you like) or anything else denies; ? lists the keys.
`

function helpText(own: readonly SlashRow[]): string {
  const all = { ...groups, ...(own.length === 0 ? {} : { 'Your own': own }) }
  const rowText = ([usage, meaning]: SlashRow) => `  ${usage.padEnd(24)} ${meaning}\n`
  return Object.entries(all)
    .map(([title, rows]) => `${title}\n${rows.map(rowText).join('')}`)
    .join('')
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

async function hits({ search }: Conversation, query: string): Promise<string> {
  const found = await search({ query, limit: 10 })
  if (found.length === 0) return 'nothing found\n'
  return found.map(({ conversationId, role, snippet }) => `  ${conversationId} ${role}: ${snippet}\n`).join('')
}

function policyLines(policy: Policy): string {
  return [
    `autonomy:   ${policy.autonomy}`,
    `workspace:  ${policy.workspace}${policy.workspaceOnly ? ' (nothing outside it)' : ' (paths outside it are allowed)'}`,
    `forbidden:  ${policy.forbiddenPaths.join(' ')}`,
    `commands:   never ${policy.forbiddenCommands.join(' ')}`,
    '',
  ].join('\n')
}
