/** `agent` without a message: the conversation, its slash commands and its turns, until the person leaves. */

import { version } from '../../../package.json'
import { createRepl } from '../../channels/repl.ts'
import type { Speaker } from '../agents/persona.ts'
import { CliExit, exitCodes } from '../exit.ts'
import type { AgentFlags } from '../routes/types.ts'
import { setUp } from '../setup/setup.ts'
import { exitOf } from '../trouble.ts'
import type { Animal, Setup, Wish } from '../world.ts'
import { tellOn } from './audience.ts'
import { slash, slashCommands } from './slash.ts'
import { acceptance, conversationOf, turn } from './turn.ts'

export type Conversing = { readonly setup: Setup; readonly flags: AgentFlags; readonly speaker?: Speaker }

/** @throws CliExit 2 for flags that mean nothing here. */
export async function converse({ setup, flags, speaker }: Conversing): Promise<void> {
  if (flags.json || (flags.outputFormat ?? 'text') !== 'text')
    throw new CliExit(exitCodes.usage, 'error: a conversation is text; for JSON pass a message with -m')
  const { context, paths, redactor } = setup
  // A conversation lasts: from here on compiling pays (scripts/compile.ts makes the start reluctant to).
  Bun.unsafe.setJITPolicy(1)
  const repl = createRepl({
    historyPath: `${paths.home}/history`,
    printer: context.process.stdout,
    commands: slashCommands.map(([name]) => name.split(' ')[0] ?? name),
    redact: redactor.text,
  })
  const awake = (from: Setup, conversation: Wish['conversation']) =>
    context.wake(from, { channel: 'cli', ask: repl.ask, tell: tellOn(context), conversation, ...speaker?.wish, ...acceptance(flags) })
  try {
    const state = { setup, animal: await awake(setup, conversationOf(flags, speaker?.session)) }
    context.process.stderr.write(`BraidClaw ${version} · ${state.animal.model} · ${state.animal.workspace} · /help\n`)

    /** The old one is closed only when the new one is there: a wrong model name must not end the conversation. */
    const replace = async (model?: string) => {
      const { workspace, agent, autonomy, maxTurns, approveAllMedium } = flags
      const next = model === undefined ? state.setup : setUp(context, { workspace, model, agent, autonomy, maxTurns, approveAllMedium })
      const animal = await awake(next, model === undefined ? { kind: 'new' } : same(state.animal))
      state.animal.close()
      Object.assign(state, { setup: next, animal })
      return animal
    }

    const say = async (prompt: string) => {
      const { animal } = state
      speaker?.mirror.begin(prompt, animal.agent.conversationId)
      const watch = speaker ? { watch: speaker.mirror.show } : {}
      try {
        await turn({ animal, setup: state.setup, format: 'text', prompt, ask: repl.ask, sayUsage: true, ...watch })
      } finally {
        speaker?.mirror.end()
      }
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
function complain({ context }: Setup, error: unknown): 'on' {
  context.process.stderr.write(`${exitOf(error).message}\n`)
  return 'on'
}

/** Before the first turn there is nothing to go on with. */
function same({ agent, memory }: Animal): Wish['conversation'] {
  const id = agent.conversationId
  return memory.conversations.has(id) ? { kind: 'resume', id } : { kind: 'new' }
}
