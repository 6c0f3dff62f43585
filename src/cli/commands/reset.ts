/** `reset`: the session of an agent is archived, and `-c` begins anew. Nothing is deleted; memory and receipts stay. */

import { forgetPointer } from '../../memory/agents/pointer.ts'
import { archiveSession } from '../../memory/agents/session.ts'
import { personaOf } from '../agents/persona.ts'
import type { SessionFlags } from '../routes/types.ts'
import { setUp } from '../setup/setup.ts'
import type { CliContext } from '../world.ts'

export function reset(this: CliContext, { agent, json = false }: SessionFlags): void {
  const { id, paths } = personaOf(setUp(this, { agent }))
  forgetPointer(paths.conversation)
  const archive = archiveSession(paths.session, Date.now())
  if (json) this.process.stdout.write(`${JSON.stringify({ agent: id, archive: archive ?? null })}\n`)
  else this.process.stdout.write(archive === undefined ? `the session of "${id}" is empty\n` : `archived ${archive}\n`)
}
