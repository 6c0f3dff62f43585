/** Implements `compose`: it prints the system prompt of an agent, as the filter sends it. */

import { agentProfileOf, soulOf } from '../../../host/setup/agent-profile.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import type { Command } from '../../args/command.ts'
import { agentFlag } from '../../args/flags.ts'

/** Prints the same bytes as `cat soul.md` when there is nothing else; prints nothing without a soul. */
export const compose = {
  flags: agentFlag,
  examples: [['--agent coder', 'what the model is told first']],
  async run(context, { agent }) {
    const setup = loadSetup(context, { agent })
    context.process.stdout.data(await soulOf(setup, agentProfileOf(setup)))
  },
} as const satisfies Command<typeof agentFlag>
