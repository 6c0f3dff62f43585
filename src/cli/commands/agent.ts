/** `agent`: a conversation in the terminal, or one turn. */

import type { Speaker } from '../agents/persona.ts'
import { CliExit, exitCodes } from '../exit.ts'
import type { AgentFlags } from '../routes/types.ts'
import { setUpKept } from '../setup/setup-kept.ts'
import { sayWhere } from '../setup/workspace.ts'
import { personHere, tellOn } from '../turn/audience.ts'
import { introduce } from '../turn/introduce.ts'
import { messageOf } from '../turn/message.ts'
import { acceptance, conversationOf, formatOf, turn } from '../turn/turn.ts'
import type { CliContext, Setup } from '../world.ts'

export async function agent(this: CliContext, flags: AgentFlags): Promise<void> {
  const { workspace, model, agent: id, autonomy, maxTurns, approveAllMedium } = flags
  const setup = await setUpKept(this, { workspace, model, agent: id, autonomy, maxTurns, approveAllMedium })
  if (!setup.config.channels.cli.enabled)
    throw new CliExit(exitCodes.error, 'error: [channels.cli] enabled = false; this channel is switched off')
  const speaker = setup.config.defaultAgent === undefined ? undefined : await (await import('../agents/persona.ts')).speakerOf(setup)
  const message = await messageOf({ message: flags.message, advice }, this)
  introduce(setup)
  sayWhere(setup)
  if (message === undefined) return (await import('../turn/converse.ts')).converse({ setup, flags, ...(speaker ? { speaker } : {}) })
  const exitCode = await oneTurn({ setup, flags, ...(speaker ? { speaker } : {}) }, message)
  if (exitCode !== 0) throw new CliExit(exitCode)
}

const advice = 'pass -m "message", pipe text in, or run it in a terminal for a conversation'

type Talk = { readonly setup: Setup; readonly flags: AgentFlags; readonly speaker?: Speaker }

async function oneTurn({ setup, flags, speaker }: Talk, prompt: string): Promise<number> {
  const ask = personHere(setup.context)
  const conversation = conversationOf(flags, speaker?.session)
  const format = formatOf(flags)
  const tell = format === 'text' ? { tell: tellOn(setup.context) } : {}
  const animal = await setup.context.wake(setup, { channel: 'cli', ask, ...tell, conversation, ...speaker?.wish, ...acceptance(flags) })
  try {
    speaker?.mirror.begin(prompt, animal.agent.conversationId)
    return await turn({
      animal,
      setup,
      format,
      prompt,
      sayUsage: true,
      ...(ask ? { ask } : {}),
      ...(speaker ? { watch: speaker.mirror.show } : {}),
    })
  } finally {
    speaker?.mirror.end()
    animal.close()
  }
}
