/** `compose`: the system prompt of an agent, as the filter sends it. */

import { personaOf, soulOf } from '../../../host/setup/agent-profile.ts'
import { setUp } from '../../../host/setup/setup.ts'
import type { Command } from '../../args/command.ts'
import { agentFlag } from '../../args/flags.ts'

/** Byte for byte what `cat soul.md` prints where there is nothing else; nothing at all without a soul. */
export const compose = {
  flags: agentFlag,
  examples: [['--agent coder', 'what the model is told first']],
  async run(context, { agent }) {
    const setup = setUp(context, { agent })
    context.process.stdout.data(await soulOf(setup, personaOf(setup)))
  },
} as const satisfies Command<typeof agentFlag>
