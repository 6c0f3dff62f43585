/** `compose`: the system prompt of an agent, as the filter sends it. */

import type { CliContext } from '../../../channels/terminal/context.ts'
import { personaOf, soulOf } from '../../../host/setup/agent-profile.ts'
import { setUp } from '../../../host/setup/setup.ts'
import type { AgentOnly } from '../../routes/types.ts'

/** Byte for byte what `cat soul.md` prints where there is nothing else; nothing at all without a soul. */
export async function compose(this: CliContext, { agent }: AgentOnly): Promise<void> {
  const setup = setUp(this, { agent })
  this.process.stdout.data(await soulOf(setup, personaOf(setup)))
}
