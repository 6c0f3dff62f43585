/** `agent` without a message: the conversation, its slash commands and its turns, until the person leaves. */

import { version } from '../../../package.json'
import type { Flags } from '../../config/layers/flags.ts'
import type { Conversation, ConversationChoice, ConversationOptions } from '../../host/api.ts'
import { openHost } from '../../host/open-host.ts'
import type { Speaker } from '../../host/setup/agent-profile.ts'
import { setUp } from '../../host/setup/setup.ts'
import { tellOn } from './audience.ts'
import type { CliSetup } from './context.ts'
import { createRepl } from './line-editor.ts'
import { turn } from './run-turn.ts'
import { slash, slashCommands } from './slash-commands.ts'

export type Conversing = Pick<ConversationOptions, 'acceptAltered' | 'sandbox'> & {
  readonly conversation: ConversationChoice
  readonly setup: CliSetup
  /** What `/model` keeps of the command line. */
  readonly settings: Flags
  readonly speaker?: Speaker
}

/** @throws FailureError when there is no conversation to be had */
export async function converse({ setup, settings, speaker, conversation: first, ...accepted }: Conversing): Promise<void> {
  const { context, paths, redactor } = setup
  // A conversation lasts: from here on compiling pays (scripts/compile.ts makes the start reluctant to).
  Bun.unsafe.setJITPolicy(1)
  const host = openHost(setup)
  const repl = createRepl({
    historyPath: `${paths.home}/history`,
    printer: context.process.stdout,
    commands: slashCommands.map(([name]) => name.split(' ')[0] ?? name),
    redact: redactor.text,
  })
  const open = (from: CliSetup, which: ConversationChoice) =>
    host.conversation(which, { setup: from, channel: 'cli', ask: repl.ask, tell: tellOn(context), ...speaker?.wish, ...accepted })
  try {
    const state = { setup, conversation: await open(setup, first) }
    context.process.stderr.write(`BraidClaw ${version} · ${state.conversation.model} · ${state.conversation.workspace} · /help\n`)

    /** The old one is closed only when the new one is there: a wrong model name must not end the conversation. */
    const replace = async (model?: string): Promise<Conversation> => {
      const next = model === undefined ? state.setup : setUp(context, { ...settings, model })
      // Before the first turn there is nothing to go on with.
      const conversation = await open(next, model === undefined ? { kind: 'new' } : { kind: 'session', id: state.conversation.id })
      await state.conversation.close()
      Object.assign(state, { setup: next, conversation })
      return conversation
    }

    const say = async (prompt: string) => {
      const { conversation } = state
      await turn({ conversation, setup: state.setup, format: 'text', prompt, ask: repl.ask, sayUsage: true })
    }

    const take = async (line: string): Promise<'on' | 'exit'> => {
      const outcome = await slash({ line, ...state, fresh: replace })
      if (outcome === 'message') await say(line)
      return outcome === 'exit' ? 'exit' : 'on'
    }

    await repl.run((line) => take(line).catch((error) => complain(setup, error)))
  } finally {
    await host.close()
    repl.close()
  }
}

/** One line gone wrong is no reason to leave. */
function complain({ context }: CliSetup, error: unknown): 'on' {
  context.process.stderr.write(`${context.explain(error)}\n`)
  return 'on'
}
