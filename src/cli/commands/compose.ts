/** `compose`: the system prompt of an agent, as the filter sends it. */

import { personaOf, soulOf } from '../agents/persona.ts'
import type { AgentOnly } from '../routes/types.ts'
import { setUp } from '../setup/setup.ts'
import type { CliContext } from '../world.ts'

/** Byte for byte what `cat soul.md` prints where there is nothing else; nothing at all without a soul. */
export async function compose(this: CliContext, { agent }: AgentOnly): Promise<void> {
  const setup = setUp(this, { agent })
  this.process.stdout.data(await soulOf(setup, personaOf(setup)))
}
