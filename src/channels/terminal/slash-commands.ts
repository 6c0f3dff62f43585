/** Interprets a line in the conversation: a slash command for us, or a message for the agent. */

import type { Conversation, Host } from '../../host/api.ts'
import { didYouMean } from '../../kit/text.ts'
import type { Policy } from '../../security/policy.ts'
import { jobsCommand } from '../jobs-command.ts'
import type { CliSetup } from './context.ts'
import type { AskPerson } from './questions/approval-prompt.ts'
import { wantsColor } from './questions/coloured.ts'

export type Slash = {
  readonly host: Host
  readonly ask: AskPerson
  readonly line: string
  readonly setup: CliSetup
  readonly conversation: Conversation
  /** Opens a new conversation; with a model it continues the same conversation with that model. */
  readonly fresh: (model?: string) => Promise<Conversation>
}

/** `continue`: the last turn goes on. */
export type Outcome = 'message' | 'continue' | 'done' | 'exit'

export const slashCommands: readonly (readonly [string, string])[] = [
  ['/help', 'this list'],
  ['/exit', 'leave (also Ctrl-D)'],
  ['/continue', 'go on with the last turn, which was interrupted'],
  ['/tools', 'list the active tools'],
  ['/memory QUERY', 'search all conversations'],
  ['/policy', 'autonomy and workspace boundary'],
  ['/changes', 'list what was changed, latest first'],
  ['/diff [NUMBER]', 'show what was changed, exactly'],
  ['/jobs [stop ID]', 'list the commands in the background, or stop one'],
  ['/undo [NUMBER]', 'take changes back (braidclaw undo --help)'],
  ['/model [PROVIDER/MODEL]', 'show the model, or go on with another'],
  ['/clear', 'begin a new conversation (the old one stays in memory)'],
]

const names = slashCommands.map(([usage]) => usage.split(' ')[0] ?? usage)

export async function slash({ line, setup, conversation, fresh, host, ask }: Slash): Promise<Outcome> {
  // A path, and pasted text of several lines, is a message.
  if (!/^\/[\w-]*(?: .*)?$/.test(line)) return 'message'
  const { write } = setup.context.process.stdout
  const [command = '', ...rest] = line.split(/\s+/)
  const argument = rest.join(' ')
  switch (command) {
    case '/exit':
    case '/quit':
      return 'exit'
    case '/continue':
      return 'continue'
    case '/help':
      write(slashCommands.map(([name, meaning]) => `  ${name.padEnd(24)} ${meaning}\n`).join(''))
      write('Asked [y/N/a]: y is yes, a is yes from now on, n and a reason is no, anything else is no. About changes: ? lists the keys.\n')
      break
    case '/tools':
      write(
        (await conversation.tools()).tools
          .map(({ name, risk, description }) => `  ${name.padEnd(14)} ${risk.padEnd(7)} ${description}\n`)
          .join(''),
      )
      break
    case '/memory':
      write(argument === '' ? 'usage: /memory QUERY\n' : hits(conversation, argument))
      break
    case '/policy':
      write(policyLines((await conversation.tools()).policy))
      break
    case '/model':
      write(`${(argument === '' ? conversation : await fresh(argument)).model}\n`)
      break
    case '/jobs':
      write(`${await jobsCommand(line, conversation, 'you')}\n`)
      break
    case '/changes':
    case '/diff':
    case '/undo': {
      const { pastChanges } = await import('./history/past-changes.ts')
      write(
        await pastChanges({
          command,
          wanted: argument,
          host,
          ask,
          workspace: conversation.workspace,
          color: wantsColor(setup.context.env),
        }),
      )
      break
    }
    case '/clear':
      await fresh()
      write('a new conversation begins\n')
      break
    default:
      write(`no command "${command}"${didYouMean(command, names)} (/help lists them)\n`)
  }
  return 'done'
}

function hits({ search }: Conversation, query: string): string {
  const found = search({ query, limit: 10 })
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
