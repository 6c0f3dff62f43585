/** Interprets what a person types in a conversation: a command that begins with a slash, or a message. */

import type { Conversation } from '../../../host/api.ts'
import { questionFold } from '../../../host/changes/change-lines.ts'
import { cut, didYouMean, visible } from '../../../kit/text.ts'
import type { Policy } from '../../../security/policy.ts'
import { sopCommand } from '../../../sop/serve-sops.ts'
import { jobsCommand, statusAnswer } from '../../jobs-command.ts'
import type { AskPerson } from '../approval-prompt.ts'
import type { CliSetup } from '../context.ts'
import { differenceLines, pastChanges } from '../past-changes.ts'
import { coloured, type Printed, wantsColor } from '../printer.ts'
import type { LineOutcome, Slash } from './contract.ts'
import { conversationCommand } from './conversations.ts'

type SlashRow = readonly [usage: string, meaning: string]

const groups: readonly (readonly [title: string, rows: readonly SlashRow[]])[] = [
  [
    'This conversation',
    [
      ['/rename NAME', 'give it a name; by itself it has its first words'],
      ['/fork [TURN]', 'go on in a copy, up to now or to that turn; this one stays as it is'],
      ['/export [FILE]', 'write it as Markdown, or as JSON to FILE.json'],
      ['/context', 'show what fills the window of the model'],
      ['/compact [keep WORDS]', 'summarise all but the latest turn now'],
      ['/cost', 'show what it has cost, and what today has'],
      ['/continue', 'continue the last turn, which was interrupted'],
      ['/clear', 'begin a new conversation (the old one stays in memory)'],
    ],
  ],
  [
    'Earlier ones',
    [
      ['/resume [WORDS]', 'choose an earlier conversation and go on in it'],
      ['/memory QUERY', 'search all conversations'],
    ],
  ],
  [
    'Changes',
    [
      ['/changes', 'list what was changed, latest first'],
      ['/diff [NUMBER]', 'show what was changed, exactly'],
      ['/undo [NUMBER]', 'take changes back (braidclaw undo --help)'],
    ],
  ],
  [
    'Model and permissions',
    [
      ['/model [PROVIDER/MODEL]', 'switch to another model; alone, list them'],
      ['/auto [on|off]', 'run commands and apply harmless changes without asking'],
      ['/policy', 'autonomy and workspace boundary'],
      ['/tools', 'list the active tools'],
      ['/mcp [approve ID]', 'list the MCP servers, or approve what one offers now'],
    ],
  ],
  [
    'Work',
    [
      ['/jobs [stop ID]', 'list the commands in the background, or stop one'],
      ['/sop [NAME KEY=VALUE…]', 'list procedures, their latest runs and questions, or begin one'],
      ["/wiggum --check 'COMMAND' TASK", 'work in a copy until the checks pass (docs/wiggum.md)'],
      ['/status', 'list the channels of running servers that do not work'],
    ],
  ],
  [
    'Other',
    [
      ['/help', 'this list'],
      ['/exit', 'leave (also Ctrl-D)'],
    ],
  ],
]

export const slashCommands: readonly SlashRow[] = groups.flatMap(([, rows]) => rows)

const nameIn = ([usage]: SlashRow) => usage.split(' ')[0] ?? usage
export const slashNames = slashCommands.map(nameIn)

/** Interprets a line in the conversation: a slash command for us, or a message for the agent. */
export async function slash(typed: Slash): Promise<LineOutcome> {
  const { line, setup, conversation, replace } = typed
  // A path, and pasted text of several lines, is a message.
  if (!/^\/[\w:-]*(?: .*)?$/.test(line)) return 'message'
  const { write } = setup.context.process.stdout
  const [command = '', ...rest] = line.split(/\s+/)
  if (command === '/exit' || command === '/quit') return 'exit'
  if (command === '/continue') return 'continue'
  if (command === '/clear') await replace({})
  const answer = command === '/clear' ? 'a new conversation begins\n' : await answerTo(command, typed, rest.join(' '))
  if (answer !== undefined) {
    write(answer)
    return 'done'
  }
  const own = (await ownCommands(conversation)).map(nameIn)
  if (own.includes(command)) return 'message'
  write(`no command "${command}"${didYouMean(command, [...slashNames, ...own])} (/help lists them)\n`)
  return 'done'
}

/** Returns what to print; undefined when we have no such command. */
async function answerTo(command: string, typed: Slash, argument: string): Promise<Printed | undefined> {
  const { line, setup, conversation, host, ask } = typed
  switch (command) {
    case '/help':
      return `${helpText(await ownCommands(conversation))}${answersHelp}`
    case '/tools':
      return (await conversation.tools()).tools
        .map(({ name, risk, description }) => `  ${name.padEnd(14)} ${risk.padEnd(7)} ${description}\n`)
        .join('')
    case '/memory':
      return argument === '' ? 'usage: /memory QUERY\n' : hits(conversation, argument)
    case '/policy':
      return policyLines((await conversation.tools()).policy)
    case '/auto':
      return auto(typed, argument)
    case '/resume':
    case '/rename':
    case '/fork':
    case '/export':
      return conversationCommand(command, typed, argument)
    case '/model':
    case '/context':
    case '/compact':
    case '/cost':
    case '/wiggum':
      return (await import('./further-commands.ts')).furtherCommand(command, typed, argument)
    case '/jobs':
      return `${await jobsCommand(line, conversation, 'you')}\n`
    case '/sop':
      return `${await sopCommand(line, host, 'terminal', { mayApprove: true })}\n`
    case '/mcp':
      return mcp(argument, setup, ask)
    case '/status':
      return `${statusAnswer((await host.schedules()).store.channels.troubles(), false)}\n`
    case '/changes':
    case '/diff':
    case '/undo':
      return pastChanges({ command, which: argument, host, ask, workspace: conversation.workspace, color: wantsColor(setup.context.env) })
  }
}

const answersHelp =
  '@PATH adds a file or folder to a message. ! COMMAND runs a command, and the next message can be about its output.\nAnswers to [y/N/a]: y allows once, a allows from now on, n (with a reason, if you like) or anything else denies. For changes, ? lists the keys.\n'

function helpText(own: readonly SlashRow[]): string {
  const all = [...groups, ...(own.length === 0 ? [] : [['Your own', own] as const])]
  const rowText = ([usage, meaning]: SlashRow) => `  ${usage.padEnd(24)} ${meaning}\n`
  return all.map(([title, rows]) => `${title}\n${rows.map(rowText).join('')}`).join('')
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

async function mcp(words: string, setup: CliSetup, ask: AskPerson): Promise<string> {
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
