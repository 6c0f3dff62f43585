/** `agent` without a message: the conversation, its slash commands and its turns, until the person leaves. */

import { version } from '../../../package.json'
import type { Flags } from '../../config/layers/flags.ts'
import type { Animal, Wish } from '../../host/api.ts'
import { wake } from '../../host/run/conversation.ts'
import type { Speaker } from '../../host/setup/agent-profile.ts'
import { setUp } from '../../host/setup/setup.ts'
import { tellOn } from './audience.ts'
import type { CliSetup } from './context.ts'
import { createRepl } from './line-editor.ts'
import { turn } from './run-turn.ts'
import { slash, slashCommands } from './slash-commands.ts'

export type Conversing = Pick<Wish, 'conversation' | 'acceptAltered' | 'sandbox'> & {
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
  const repl = createRepl({
    historyPath: `${paths.home}/history`,
    printer: context.process.stdout,
    commands: slashCommands.map(([name]) => name.split(' ')[0] ?? name),
    redact: redactor.text,
  })
  const awake = (from: CliSetup, conversation: Wish['conversation']) =>
    wake(from, { channel: 'cli', ask: repl.ask, tell: tellOn(context), conversation, ...speaker?.wish, ...accepted })
  try {
    const state = { setup, animal: await awake(setup, first) }
    context.process.stderr.write(`BraidClaw ${version} · ${state.animal.model} · ${state.animal.workspace} · /help\n`)

    /** The old one is closed only when the new one is there: a wrong model name must not end the conversation. */
    const replace = async (model?: string) => {
      const next = model === undefined ? state.setup : setUp(context, { ...settings, model })
      const animal = await awake(next, model === undefined ? { kind: 'new' } : same(state.animal))
      state.animal.close()
      Object.assign(state, { setup: next, animal })
      return animal
    }

    const say = async (prompt: string) => {
      const { animal } = state
      await turn({ animal, setup: state.setup, format: 'text', prompt, ask: repl.ask, sayUsage: true })
    }

    const take = async (line: string): Promise<'on' | 'exit'> => {
      const outcome = await slash({ line, setup: state.setup, animal: state.animal, fresh: replace })
      if (outcome === 'message') await say(line)
      return outcome === 'exit' ? 'exit' : 'on'
    }

    try {
      await repl.run((line) => take(line).catch((error) => complain(setup, error)))
    } finally {
      state.animal.close()
    }
  } finally {
    repl.close()
  }
}

/** One line gone wrong is no reason to leave. */
function complain({ context }: CliSetup, error: unknown): 'on' {
  context.process.stderr.write(`${context.explain(error)}\n`)
  return 'on'
}

/** Before the first turn there is nothing to go on with. */
function same({ agent, memory }: Animal): Wish['conversation'] {
  const id = agent.conversationId
  return memory.conversations.has(id) ? { kind: 'resume', id } : { kind: 'new' }
}
