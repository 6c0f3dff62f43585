/** `log EVENT [MESSAGE]`: a script's own lines in agent.jsonl, beside those of the turns. */

import type { CliContext } from '../../../channels/terminal/context.ts'
import { personaOf } from '../../../host/setup/agent-profile.ts'
import { setUp } from '../../../host/setup/setup.ts'
import { appendTrace } from '../../../memory/agent-files/trace-file.ts'
import { CliExit, exitCodes } from '../../exit.ts'
import type { AgentOnly } from '../../routes/types.ts'

export function log(this: CliContext, { agent }: AgentOnly, event: string, message = ''): void {
  if (!/^[\w.-]{1,64}$/.test(event))
    throw new CliExit(exitCodes.usage, `error: "${event}" is no event; write one word, such as deploy_done`)
  const { redactor, ...setup } = setUp(this, { agent })
  const { id, paths } = personaOf(setup)
  appendTrace(paths.log, { agent: id, event, message: redactor.text(message) }, Date.now())
}
