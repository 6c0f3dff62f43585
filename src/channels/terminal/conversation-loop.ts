/** Runs a conversation at the terminal, with its slash commands and turns, until the person leaves. */

import { version } from '../../../package.json'
import type { Flags } from '../../config/load.ts'
import type { Conversation, ConversationChoice, ConversationOptions, Host } from '../../host/api.ts'
import type { ActiveAgent } from '../../host/setup/agent-profile.ts'
import { loadSetup } from '../../host/setup/setup.ts'
import type { AskLine } from '../../runtime/port.ts'
import type { AttendedChannel } from '../inbox/channel-api.ts'
import { tellOnStderr } from './audience.ts'
import type { CliSetup } from './context.ts'
import { createRepl } from './line-editor.ts'
import { turn } from './run-turn.ts'
import { slash, slashCommands } from './slash-commands.ts'

export type LoopOptions = Pick<ConversationOptions, 'acceptAltered' | 'sandbox'> & {
  readonly conversation: ConversationChoice
  readonly setup: CliSetup
  /** The command-line settings that `/model` keeps. */
  readonly settings: Flags
  readonly activeAgent?: ActiveAgent
}

type Current = { setup: CliSetup; conversation: Conversation }

export function createTerminalChannel(options: LoopOptions): AttendedChannel {
  const { setup } = options
  const { context, paths, redactor } = setup
  const state: { current?: Current } = {}
  return {
    name: 'cli',
    async start(host, signal) {
      const repl = createRepl({
        historyPath: `${paths.home}/history`,
        printer: context.process.stdout,
        commands: slashCommands.map(([name]) => name.split(' ')[0] ?? name),
        env: context.env,
        redact: redactor.text,
      })
      signal.addEventListener('abort', repl.close, { once: true })
      try {
        await converse({ host, repl, options, begun: (current) => Object.assign(state, { current }) })
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

type Talking = {
  readonly host: Host
  readonly repl: ReturnType<typeof createRepl>
  readonly options: LoopOptions
  /** Called once, with the object that always holds the current state. */
  readonly begun: (current: Current) => void
}

/** @throws FailureError when no conversation can be opened */
async function converse({ host, repl, options, begun }: Talking): Promise<void> {
  const { setup, settings, activeAgent, conversation: first, ...accepted } = options
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
  begun(state)
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

  const say = async (prompt?: string) => {
    const { conversation } = state
    await turn({ conversation, setup: state.setup, format: 'text', prompt, ask: repl.ask, sayUsage: true })
  }

  const take = async (line: string): Promise<'on' | 'exit'> => {
    const outcome = await slash({ line, ...state, fresh: replace, host, ask: repl.ask })
    if (outcome === 'message') await say(line)
    if (outcome === 'continue') await say()
    return outcome === 'exit' ? 'exit' : 'on'
  }

  // The space keeps the line out of the history of the editor.
  const line = first.kind !== 'new' && (await wantsToGoOn(state, repl.ask)) ? ' /continue' : undefined
  await repl.run((line) => take(line).catch((error) => complain(setup, error)), line)
}

/** Asks once, at the start of a conversation, whether a turn that something interrupted goes on. */
async function wantsToGoOn({ setup: { config }, conversation }: Current, ask: AskLine): Promise<boolean> {
  if (config.continueTurns === 'never') return false
  const turn = await conversation.interrupted()
  if (typeof turn === 'string' || turn.diedOf === undefined) return false
  if (config.continueTurns === 'auto') return true
  const calls = `${turn.calls} ${turn.calls === 1 ? 'call' : 'calls'}`
  const line = await ask(`The last turn was interrupted after ${calls} (${turn.diedOf}). Go on with it? [y/N] `)
  return /^y(es)?$/i.test(line?.trim() ?? '')
}

/** Reports an error of one line and continues. */
function complain({ context }: CliSetup, error: unknown): 'on' {
  context.process.stderr.write(`${context.explain(error)}\n`)
  return 'on'
}
