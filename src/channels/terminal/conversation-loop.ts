/** Runs a conversation at the terminal, with its slash commands and turns, until the person leaves. */

import { version } from '../../../package.json'
import type { Flags } from '../../config/load.ts'
import type { Conversation, ConversationChoice, ConversationOptions, Host } from '../../host/api.ts'
import type { ActiveAgent } from '../../host/setup/agent-profile.ts'
import { loadSetup } from '../../host/setup/setup.ts'
import { count } from '../../kit/text.ts'
import type { Usage } from '../../runtime/event.ts'
import type { AskLine, Picture } from '../../runtime/port.ts'
import { addUsage } from '../../runtime/usage.ts'
import type { AttendedChannel } from '../inbox/channel-api.ts'
import { mentionCompleter } from '../inbox/mentions.ts'
import { readAnswer } from './approval-prompt.ts'
import { tellOnStderr } from './audience.ts'
import type { CliSetup } from './context.ts'
import { type Folds, openFold } from './markdown/terminal-render.ts'
import { type TurnOptions, turn } from './run-turn.ts'
import { createLineReader, type Repl } from './screen/line-reader.ts'
import { type Completer, createScreen } from './screen/screen-editor.ts'
import { footerOf } from './screen/usage-line.ts'
import { effortLevels, type Slash } from './slash/contract.ts'
import { slash, slashNames } from './slash/slash.ts'
import { isTerminal } from './tty.ts'

export type LoopOptions = Pick<ConversationOptions, 'acceptAltered' | 'sandbox'> & {
  readonly conversation: ConversationChoice
  readonly setup: CliSetup
  /** The command-line settings that `/model`, `/effort` and `/auto` keep. */
  readonly settings: Flags
  readonly activeAgent?: ActiveAgent
  /** The pictures of the first message. */
  readonly pictures?: readonly Picture[] | undefined
  /** Lines instead of a live area, for screen readers. */
  readonly plain?: boolean | undefined
}

/** `used`: by all turns of the conversation. */
type Current = { setup: CliSetup; conversation: Conversation; folds: Folds; used?: Usage | undefined }

export function createTerminalChannel(options: LoopOptions): AttendedChannel {
  const { setup } = options
  const { context, paths, redactor } = setup
  const state: { current?: Current; own?: readonly string[] } = {}
  return {
    name: 'cli',
    async start(host, signal) {
      const mentions = mentionCompleter(async () => (await state.current?.conversation.tools())?.files)
      const complete: Completer = async (line, cursor) => {
        const begun = line.slice(0, cursor)
        const levels = begun.startsWith('/effort ') ? effortLevels.map((level) => `/effort ${level}`) : []
        const commands = [...slashNames, ...(state.own ?? []), ...levels].filter(
          (command) => begun.startsWith('/') && command.startsWith(begun),
        )
        return commands.length > 0 ? { from: 0, words: commands } : mentions(line, cursor)
      }
      const { env, status } = context
      const base = { historyPath: `${paths.home}/history`, printer: context.process.stdout, env, redact: redactor.text }
      const footer = () => (state.current ? footerOf({ ...state.current.conversation, home: env.HOME, used: state.current.used }) : '')
      const onKey = (key: string) =>
        /^ctrl-[ot]$/.test(key) ? openFold(state.current?.folds ?? {}, key === 'ctrl-o' ? 'output' : 'thinking') : undefined
      const steer = async (text: string) => (await state.current?.conversation.steer(text)) ?? false
      const hasScreen = env.TERM !== 'dumb' && !options.plain && isTerminal(1)
      const repl = hasScreen ? createScreen({ ...base, complete, status, footer, steer, onKey }) : createLineReader(base)
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
  readonly repl: Repl
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
  const state: Current = { setup, conversation: await open(setup, first), folds: {} }
  await begun(state)
  context.process.stderr.write(`BraidClaw ${version} · ${state.conversation.model} · ${state.conversation.workspace} · /help\n`)

  const changed: { flags: Flags } = { flags: settings }
  /** Closes the old conversation only when the new one is open: a wrong model name must not end the conversation. */
  const replace: Slash['replace'] = async ({ id, ...change }) => {
    const isOther = Object.keys(change).length > 0
    const flags = { ...changed.flags, ...change }
    const next = isOther ? loadSetup(context, flags) : state.setup
    // Before the first turn no conversation exists to continue.
    const same = isOther ? ({ kind: 'session', id: state.conversation.id } as const) : ({ kind: 'new' } as const)
    const conversation = await open(next, id === undefined ? same : { kind: 'resume', id })
    await state.conversation.close()
    changed.flags = flags
    Object.assign(state, { setup: next, conversation, ...(isOther ? {} : { used: undefined }) })
    return conversation
  }

  const say = async (prompt?: string, own?: TurnOptions['own']) => {
    const { conversation, folds } = state
    // A command of the operator's own has no pictures: they wait for the message.
    const pictures = prompt === undefined || own ? [] : waiting.splice(0)
    const asked = { prompt, pictures, words: prompt, own }
    await turn({ ...asked, conversation, setup: state.setup, format: 'text', ask: repl.ask, sayUsage: true, folds })
    const used = conversation.usage()
    if (used) state.used = addUsage(state.used, used)
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
    const outcome = await slash({ line, ...state, replace, host, ask: repl.ask })
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
  const line = await ask(`The last turn was interrupted after ${count(turn.calls, 'call')} (${turn.diedOf}). Continue it? [y/N] `)
  return readAnswer(line).kind === 'yes'
}

/** Reports an error of one line and continues. */
function complain({ context }: CliSetup, error: unknown): 'on' {
  context.process.stderr.write(`${context.explain(error)}\n`)
  return 'on'
}
