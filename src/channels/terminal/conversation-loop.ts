/** Runs a conversation at the terminal, with its slash commands and turns, until the person leaves. */

import { version } from '../../../package.json'
import type { Flags } from '../../config/load.ts'
import type { Conversation, ConversationChoice, ConversationOptions, Host } from '../../host/api.ts'
import { questionFold } from '../../host/changes/change-lines.ts'
import type { ActiveAgent } from '../../host/setup/agent-profile.ts'
import { loadSetup } from '../../host/setup/setup.ts'
import { cut, didYouMean, visible } from '../../kit/text.ts'
import type { AskLine, Picture } from '../../runtime/port.ts'
import type { Policy } from '../../security/policy.ts'
import { sopCommand } from '../../sop/serve-sops.ts'
import type { AttendedChannel } from '../inbox/channel-api.ts'
import { mentionCompleter } from '../inbox/mentions.ts'
import { jobsCommand, statusAnswer } from '../jobs-command.ts'
import type { AskPerson } from './approval-prompt.ts'
import { tellOnStderr } from './audience.ts'
import type { CliSetup } from './context.ts'
import { createRepl } from './line-editor.ts'
import { differenceLines, pastChanges } from './past-changes.ts'
import { coloured, wantsColor } from './printer.ts'
import { type TurnOptions, turn } from './run-turn.ts'

export type LoopOptions = Pick<ConversationOptions, 'acceptAltered' | 'sandbox'> & {
  readonly conversation: ConversationChoice
  readonly setup: CliSetup
  /** The command-line settings that `/model` keeps. */
  readonly settings: Flags
  readonly activeAgent?: ActiveAgent
  /** The pictures of the first message. */
  readonly pictures?: readonly Picture[] | undefined
}

type Current = { setup: CliSetup; conversation: Conversation }

export function createTerminalChannel(options: LoopOptions): AttendedChannel {
  const { setup } = options
  const { context, paths, redactor } = setup
  const state: { current?: Current; own?: readonly string[] } = {}
  return {
    name: 'cli',
    async start(host, signal) {
      const mentions = mentionCompleter(async () => (await state.current?.conversation.tools())?.files)
      const repl = createRepl({
        historyPath: `${paths.home}/history`,
        printer: context.process.stdout,
        async complete(line, cursor) {
          const commands = [...names, ...(state.own ?? [])].filter((command) => line.startsWith('/') && command.startsWith(line))
          return commands.length > 0 ? { from: 0, words: commands } : mentions(line, cursor)
        },
        env: context.env,
        redact: redactor.text,
      })
      signal.addEventListener('abort', repl.close, { once: true })
      try {
        const begun = async (current: Current) => {
          state.current = current
          state.own = (await current.conversation.commands())?.list.map(({ name }) => `/${name}`)
        }
        await converse({ host, repl, options, begun })
      } finally {
        repl.close()
      }
    },
    async send(conversationId, message) {
      if (state.current?.conversation.id !== conversationId) throw new Error(`${conversationId} is not the conversation at this terminal`)
      context.process.stdout.write(`${message}\n`)
    },
    supportsDraftUpdates: () => true,
  }
}

type TerminalConversation = {
  readonly host: Host
  readonly repl: ReturnType<typeof createRepl>
  readonly options: LoopOptions
  /** Called once, with the object that always holds the current state. */
  readonly begun: (current: Current) => Promise<void>
}

/** @throws FailureError when no conversation can be opened */
async function converse({ host, repl, options, begun }: TerminalConversation): Promise<void> {
  const { setup, settings, activeAgent, conversation: first, pictures = [], ...accepted } = options
  const waiting = [...pictures]
  const { context } = setup
  const open = (from: CliSetup, which: ConversationChoice) =>
    host.conversation(which, {
      setup: from,
      channel: 'cli',
      ask: repl.ask,
      tell: tellOnStderr(context),
      ...activeAgent?.request,
      ...accepted,
    })
  const state: Current = { setup, conversation: await open(setup, first) }
  await begun(state)
  context.process.stderr.write(`BraidClaw ${version} · ${state.conversation.model} · ${state.conversation.workspace} · /help\n`)

  /** Closes the old conversation only when the new one is open: a wrong model name must not end the conversation. */
  const replace = async (model?: string): Promise<Conversation> => {
    const next = model === undefined ? state.setup : loadSetup(context, { ...settings, model })
    // Before the first turn no conversation exists to continue.
    const conversation = await open(next, model === undefined ? { kind: 'new' } : { kind: 'session', id: state.conversation.id })
    await state.conversation.close()
    Object.assign(state, { setup: next, conversation })
    return conversation
  }

  const say = async (prompt?: string, own?: TurnOptions['own']) => {
    const { conversation } = state
    // A command of the operator's own has no pictures: they wait for the message.
    const pictures = prompt === undefined || own ? [] : waiting.splice(0)
    await turn({ conversation, setup: state.setup, format: 'text', prompt, pictures, words: prompt, own, ask: repl.ask, sayUsage: true })
  }

  /** Runs the operator's own command; what it prints is part of the conversation, and the next message is about it. */
  const runCommand = async (command: string): Promise<'on'> => {
    const prompt = `! ${command}\n[The user ran this command; the result below is its output.]`
    if (command === '' || command.startsWith('!')) context.process.stdout.write('usage: ! COMMAND runs a command in the workspace\n')
    else await say(prompt, { calls: [{ name: 'shell', input: { command } }], asksNoModel: true })
    return 'on'
  }

  const take = async (line: string): Promise<'on' | 'exit'> => {
    // Pasted text of several lines is a message.
    if (/^!.*$/.test(line)) return runCommand(line.slice(1).trim())
    const outcome = await slash({ line, ...state, fresh: replace, host, ask: repl.ask })
    if (outcome === 'message') await say(line)
    if (outcome === 'continue') await say()
    return outcome === 'exit' ? 'exit' : 'on'
  }

  // The space keeps the line out of the history of the editor.
  const line = first.kind !== 'new' && (await wantsToGoOn(state, repl.ask)) ? ' /continue' : undefined
  await repl.run((line) => take(line).catch((error) => complain(setup, error)), line)
}

/** Asks once, at the start of a conversation, whether to continue a turn that was interrupted. */
async function wantsToGoOn({ setup: { config }, conversation }: Current, ask: AskLine): Promise<boolean> {
  if (config.continueTurns === 'never') return false
  const turn = await conversation.interrupted()
  if (typeof turn === 'string' || turn.diedOf === undefined) return false
  if (config.continueTurns === 'auto') return true
  const calls = `${turn.calls} ${turn.calls === 1 ? 'call' : 'calls'}`
  const line = await ask(`The last turn was interrupted after ${calls} (${turn.diedOf}). Continue it? [y/N] `)
  return /^y(es)?$/i.test(line?.trim() ?? '')
}

/** Reports an error of one line and continues. */
function complain({ context }: CliSetup, error: unknown): 'on' {
  context.process.stderr.write(`${context.explain(error)}\n`)
  return 'on'
}

export type Slash = {
  readonly host: Host
  readonly ask: AskPerson
  readonly line: string
  readonly setup: CliSetup
  readonly conversation: Conversation
  /** Opens a new conversation; with a model it continues the same conversation with that model. */
  readonly fresh: (model?: string) => Promise<Conversation>
}

/** `continue`: the last turn continues. */
export type LineOutcome = 'message' | 'continue' | 'done' | 'exit'

export const slashCommands: readonly (readonly [string, string])[] = [
  ['/help', 'this list'],
  ['/exit', 'leave (also Ctrl-D)'],
  ['/continue', 'continue the last turn, which was interrupted'],
  ['/tools', 'list the active tools'],
  ['/memory QUERY', 'search all conversations'],
  ['/policy', 'autonomy and workspace boundary'],
  ['/changes', 'list what was changed, latest first'],
  ['/diff [NUMBER]', 'show what was changed, exactly'],
  ['/status', 'list the channels of running servers that do not work'],
  ['/jobs [stop ID]', 'list the commands in the background, or stop one'],
  ['/sop [NAME KEY=VALUE…]', 'list procedures, their latest runs and questions, or begin one'],
  ["/wiggum --check 'COMMAND' TASK", 'work in a copy until the checks pass (docs/wiggum.md)'],
  ['/mcp [approve ID]', 'list the MCP servers, or approve what one offers now'],
  ['/undo [NUMBER]', 'take changes back (braidclaw undo --help)'],
  ['/model [PROVIDER/MODEL]', 'show the model, or switch to another'],
  ['/clear', 'begin a new conversation (the old one stays in memory)'],
]

const nameIn = ([usage]: readonly [string, string]) => usage.split(' ')[0] ?? usage
const names = slashCommands.map(nameIn)

/** Interprets a line in the conversation: a slash command for us, or a message for the agent. */
export async function slash({ line, setup, conversation, fresh, host, ask }: Slash): Promise<LineOutcome> {
  // A path, and pasted text of several lines, is a message.
  if (!/^\/[\w:-]*(?: .*)?$/.test(line)) return 'message'
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
      write([...slashCommands, ...(await ownCommands(conversation))].map(([name, meaning]) => `  ${name.padEnd(24)} ${meaning}\n`).join(''))
      write(
        '@PATH adds a file or folder to a message. ! COMMAND runs a command, and the next message can be about its output.\nAnswers to [y/N/a]: y allows once, a allows from now on, n (with a reason, if you like) or anything else denies. For changes, ? lists the keys.\n',
      )
      break
    case '/tools':
      write(
        (await conversation.tools()).tools
          .map(({ name, risk, description }) => `  ${name.padEnd(14)} ${risk.padEnd(7)} ${description}\n`)
          .join(''),
      )
      break
    case '/memory':
      write(argument === '' ? 'usage: /memory QUERY\n' : await hits(conversation, argument))
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
    case '/sop':
      write(`${await sopCommand(line, host, 'terminal', { mayApprove: true })}\n`)
      break
    case '/wiggum':
      await wiggum({ text: line.slice(command.length).trim(), host, setup, ask })
      break
    case '/mcp':
      write(await mcp(argument, setup, ask))
      break
    case '/status':
      write(`${statusAnswer((await host.schedules()).store.channels.troubles(), false)}\n`)
      break
    case '/changes':
    case '/diff':
    case '/undo': {
      write(
        await pastChanges({ command, which: argument, host, ask, workspace: conversation.workspace, color: wantsColor(setup.context.env) }),
      )
      break
    }
    case '/clear':
      await fresh()
      write('a new conversation begins\n')
      break
    default: {
      const own = (await ownCommands(conversation)).map(nameIn)
      if (own.includes(command)) return 'message'
      write(`no command "${command}"${didYouMean(command, [...names, ...own])} (/help lists them)\n`)
    }
  }
  return 'done'
}

/** Returns the commands of files and skills as lines of /help. */
async function ownCommands({ commands }: Conversation): Promise<typeof slashCommands> {
  const list = (await commands())?.list ?? []
  return list.map(({ usage, description }) => [`/${visible(usage)}`, cut(visible(description), 100)])
}

async function wiggum({ text, host, setup, ask }: Pick<Slash, 'host' | 'setup' | 'ask'> & { readonly text: string }): Promise<void> {
  const { readWiggumLine, wiggumTurn } = await import('./wiggum-turn.ts')
  const work = readWiggumLine(text)
  if (typeof work === 'string') setup.context.process.stdout.write(`${work}\n`)
  else await wiggumTurn({ host, setup, ask, work })
}

async function mcp(words: string, setup: CliSetup, ask: AskPerson): Promise<string> {
  const { process, env } = setup.context
  const { mcpCommand } = await import('../mcp-command.ts')
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
