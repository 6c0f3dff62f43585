/** `reset`: the session of an agent is archived, and `-c` begins anew. Nothing is deleted; memory and receipts stay. */

import type { CliContext } from '../../../channels/terminal/context.ts'
import { personaOf } from '../../../host/setup/agent-profile.ts'
import { setUp } from '../../../host/setup/setup.ts'
import { forgetPointer } from '../../../memory/agent-files/conversation-pointer.ts'
import { archiveSession } from '../../../memory/agent-files/session-file.ts'
import type { SessionFlags } from '../../routes/types.ts'

export function reset(this: CliContext, { agent, json = false }: SessionFlags): void {
  const { id, paths } = personaOf(setUp(this, { agent }))
  forgetPointer(paths.conversation)
  const archive = archiveSession(paths.session, Date.now())
  if (json) this.process.stdout.write(`${JSON.stringify({ agent: id, archive: archive ?? null })}\n`)
  else this.process.stdout.write(archive === undefined ? `the session of "${id}" is empty\n` : `archived ${archive}\n`)
}
